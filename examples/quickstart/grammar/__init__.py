"""A small grammar of German and English, which makes the demo corpus. README.md explains it."""
