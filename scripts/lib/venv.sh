# Sourced by the scripts. venv_ready runtime|dev: a .venv that holds what the current pyproject.toml and setup.cfg ask for.
# The stamp is a hash of those files, so a second run costs nothing and a changed dependency is noticed.

python_command() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "Python 3.11 or newer is needed; set PYTHON to one" >&2
  return 1
}

# uv, which takes seconds where pip takes a minute for the tools; but it does not read pip's settings, which may name the
# only index there is.
venv_install() {
  local pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile)
  "${pip[@]}" uv && .venv/bin/uv pip install --quiet --python .venv/bin/python --editable "$1" && return
  "${pip[@]}" --editable "$1"
}

venv_ready() {
  local extras="$1" python stamp target=.
  [ "$extras" = dev ] && target=".[dev]"
  stamp="$(cat pyproject.toml setup.cfg | cksum | tr ' ' '-')"
  [ -f ".venv/.ready-dev-$stamp" ] && return
  [ "$extras" = runtime ] && [ -f ".venv/.ready-runtime-$stamp" ] && return
  python="$(python_command)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  echo "installing into .venv ..." >&2
  venv_install "$target" >&2
  rm -f .venv/.ready-"$extras"-*
  touch ".venv/.ready-$extras-$stamp"
}
