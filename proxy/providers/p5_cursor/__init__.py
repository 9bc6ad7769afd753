"""P5: Cursor Agent, an agent service that uses the client's tools for files and commands while it answers.

`provider.py` is its side towards the server and `adapter.py` one request. `prompt.py`, `images.py` and `models.py` make
the opening message of a run, `answer.py` the answer. The rooms: `wire/` protobuf and envelopes, `run/` one run over its
two channels, `bridge/` tools that pause a run and resume it, `account/` the sign-in.
"""
