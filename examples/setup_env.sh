#!/usr/bin/env bash
# Make .venv in the root of the repository, with fairseq, this plugin and everything that they need. If .venv is up to
# date, the script does nothing.
#
#   bash examples/setup_env.sh
#
# The environment variable PYTHON names the interpreter to build on. The default is the first of python3.14, python3.13,
# python3.12, python3.11 and python3 that is Python 3.11 or newer. A .venv that is there keeps its interpreter; remove
# it to change that. The file .venv/ready holds a checksum of what .venv was made from.
source "$(dirname "$0")/recipe.sh"
sets_up=1
parse '' "$@"
[ ${#words[@]} = 0 ] || usage
cd "$root"
PATH=${PATH//"$root/.venv/bin:"/} # the Python in .venv does not build .venv

fairseq=0.12.2
log=.venv/install.log

# missing WHAT REMEDY
missing() {
  printf 'setup_env: %s\n           %s\n' "$1" "$2" >&2
  exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate candidates=(python3.14 python3.13 python3.12 python3.11 python3)
  [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    if new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  missing "no Python 3.11 or newer (looked at: ${PYTHON:-python3.14, python3.13, python3.12, python3.11, python3})" \
    "install one, for example: apt install python3 python3-venv python3-dev, or name one: PYTHON=/path/to/python3"
}

check_machine() {
  "$python" -c 'import venv, ensurepip' 2>/dev/null || missing "$python cannot make virtual environments" \
    "install its venv package, for example: apt install python3-venv"
  local header
  header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')
  [ -f "$header" ] || missing "the Python headers are missing ($header), which fairseq is compiled with" \
    "install them, for example: apt install python3-dev"
  command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    missing "no C++ compiler, which fairseq is compiled with" "install one, for example: apt install g++"
}

# Runs pip; its output goes to the log. The screen shows the names of the packages that it fetches, and its longest steps.
shown='s/^Collecting \([^ ]*\).*/    \1/p
  s/^Building wheels for collected packages: /    building /p
  s/^Installing collected packages: .*/    installing all of them, up to a minute/p'
pip_install() {
  if ! .venv/bin/python -m pip install "$@" 2>&1 | tee -a "$log" | sed -un "$shown"; then
    tail -n 20 "$log" >&2
    missing "pip failed; its last lines are above, the rest is in $log" "fix the cause and run this again"
  fi
}

# Prints a checksum that changes when .venv must be made again.
fingerprint() { { pwd; cat setup.py pyproject.toml constraints.txt examples/setup_env.sh; } | cksum; }

if [ -f .venv/ready ] && [ "$(cat .venv/ready)" = "$(fingerprint)" ] && .venv/bin/python -c '' 2>/dev/null; then
  echo "environment: .venv is ready"
  exit 0
fi

python=.venv/bin/python
new_enough "$python" || python=$(find_python)
check_machine
started=$SECONDS
echo "environment: building .venv with $("$python" --version), about two minutes"
[ "$python" = .venv/bin/python ] || "$python" -m venv --clear .venv
rm -f .venv/ready
: > "$log"
# An interrupted set-up may have made the Python without its pip.
.venv/bin/python -m pip --version > /dev/null 2>&1 || .venv/bin/python -m ensurepip >> "$log" 2>&1 || true
# In a checkout that was moved or copied, commands name the Python of the place where they were made.
here=$(sed 's/[&|\\]/\\&/g' <<< "$PWD")
{ grep -lIZ '^#!.*/\.venv/bin/python' .venv/bin/* || true; } | xargs -0r sed -i "1s|^#!.*/\.venv/bin|#!$here/.venv/bin|"
echo "  PyTorch and the other requirements; fairseq $fairseq is compiled meanwhile"
.venv/bin/python -m pip wheel -c constraints.txt --no-deps -w .venv/wheels "fairseq==$fairseq" > .venv/wheel.log 2>&1 &
compiling=$!
trap 'kill "$compiling" 2> /dev/null || true' EXIT
# "compat" makes the checkout importable through a path file; pip's default would run code at every start of Python.
pip_install -c constraints.txt --config-settings editable_mode=compat -e '.[test]'
wait "$compiling" || true
trap - EXIT
cat .venv/wheel.log >> "$log"
pip_install --no-deps .venv/wheels/fairseq-"$fairseq"-*.whl
.venv/bin/python -c 'import lwc_fairseq.models.lwc_transformer' >> "$log" 2>&1 || {
  tail -n 20 "$log" >&2
  missing "lwc_fairseq does not import; the last lines are above" "remove .venv and run this again"
}
fingerprint > .venv/ready
echo "environment: ready after $((SECONDS - started)) s"
