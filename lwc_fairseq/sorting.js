// Makes the tables of a page sortable: a click on the head of a column sorts its rows, a second click reverses them, and a
// third one restores their order. Numbers are compared as numbers and stand before texts; empty cells come last.
const collator = new Intl.Collator(undefined, {numeric: true});

/** The number that begins a text such as "19.07M", "1,850", "70.2 ± 0.4" or "10–19"; NaN if none does. */
function leadingNumber(text) {
  const found = text.match(/^[-+−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/i);
  return found ? Number(found[0].replaceAll(",", "").replace("−", "-")) : NaN;
}

function compare(first, second) {
  const [a, b] = [leadingNumber(first), leadingNumber(second)];
  if (!isNaN(a) && !isNaN(b)) return a - b || collator.compare(first, second);
  return isNaN(a) - isNaN(b) || collator.compare(first, second);
}

function makeSortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (!button.textContent) button.setAttribute("aria-label", "name");
    head.append(button);
    button.addEventListener("click", () => {
      const order = {ascending: "descending", descending: "none"}[head.getAttribute("aria-sort")] ?? "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      if (order !== "none") head.setAttribute("aria-sort", order);
      const cell = row => row.cells[column].textContent.trim();
      const isMissing = row => /^[-–]?$/.test(cell(row));
      const sign = {ascending: 1, descending: -1, none: 0}[order];
      body.append(...original.toSorted((a, b) =>
        sign && (isMissing(a) - isMissing(b) || sign * compare(cell(a), cell(b)))));
    });
  });
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
