"""What can go wrong in a run, by name. Each fault turns the normal answer into the actions to play instead.

A fault is a function of the answer and of the parameters of its script step; its signature is the list of those
parameters. `after` says how much of the normal answer comes first: "nothing", "created" (the client has said where it
is), "thinking", "text" (one delta of it), "call" (the client was asked to run something, and has not answered).
"""
