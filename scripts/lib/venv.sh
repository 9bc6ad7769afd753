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

venv_ready() {
  local extras="$1" python stamp target=. options=(--no-build-isolation)
  # Of the tools much is never imported: what is gets compiled then.
  [ "$extras" = dev ] && target=".[dev]" && options+=(--no-compile)
  stamp="$(cat pyproject.toml setup.cfg | cksum | tr ' ' '-')"
  [ -f ".venv/.ready-dev-$stamp" ] && return
  [ "$extras" = runtime ] && [ -f ".venv/.ready-runtime-$stamp" ] && return
  python="$(python_command)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  echo "installing into .venv ..." >&2
  # With a setuptools at hand that makes wheels itself, pip makes no environment to build this package in.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "setuptools>=70.1" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "${options[@]}" --editable "$target" >&2
  rm -f .venv/.ready-"$extras"-*
  touch ".venv/.ready-$extras-$stamp"
}
