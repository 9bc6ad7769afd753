"""Requests and results about commands."""

TABLE = """\
ShellArgs = 1 command string, 2 working_directory string, 3 timeout int32, 4 tool_call_id string,
    5 simple_commands string[], 6 has_input_redirect bool, 7 has_output_redirect bool,
    9 requested_sandbox_policy bytes(SandboxPolicy)?, 10 file_output_threshold_bytes uint64?, 11 is_background bool,
    12 skip_approval bool, 13 timeout_behavior enum(TimeoutBehavior), 14 hard_timeout int32?, 15 description string?,
    17 close_stdin bool
ShellResult = |1 success ShellSuccess, |2 failure ShellFailure, |3 timeout ShellTimeout, |4 rejected ShellRejected,
    |5 spawn_error ShellSpawnError, |7 permission_denied ShellPermissionDenied,
    101 sandbox_policy bytes(SandboxPolicy)?, 102 is_background bool?, 103 terminals_folder string?, 104 pid uint32?
ShellSuccess = 1 command string, 2 working_directory string, 3 exit_code int32, 4 signal string, 5 stdout string,
    6 stderr string, 7 execution_time int32, 8 output_location bytes(OutputLocation)?, 9 shell_id uint32?,
    10 interleaved_output string?, 11 pid uint32?, 12 ms_to_wait int32?, 13 local_execution_time_ms int32?,
    14 background_reason enum(ShellBackgroundReason)?
ShellFailure = 1 command string, 2 working_directory string, 3 exit_code int32, 4 signal string, 5 stdout string,
    6 stderr string, 7 execution_time int32, 8 output_location bytes(OutputLocation)?, 9 interleaved_output string?,
    10 abort_reason enum(ShellAbortReason)?, 11 aborted bool, 12 local_execution_time_ms int32?
ShellTimeout = 1 command string, 2 working_directory string, 3 timeout_ms int32
ShellRejected = 1 command string, 2 working_directory string, 3 reason string, 4 is_readonly bool
ShellSpawnError = 1 command string, 2 working_directory string, 3 error string
ShellPermissionDenied = 1 command string, 2 working_directory string, 3 error string, 4 is_readonly bool
ShellStream = |1 stdout ShellStreamStdout, |2 stderr ShellStreamStderr, |3 exit ShellStreamExit,
    |4 start ShellStreamStart, |5 rejected ShellRejected, |6 permission_denied ShellPermissionDenied,
    |7 backgrounded ShellStreamBackgrounded
ShellStreamStdout = 1 data string
ShellStreamStderr = 1 data string
ShellStreamExit = 1 code uint32, 2 cwd string, 3 output_location bytes(OutputLocation)?, 4 aborted bool,
    5 abort_reason enum(ShellAbortReason)?, 6 local_execution_time_ms int32?
ShellStreamStart = 1 sandbox_policy bytes(SandboxPolicy)?
ShellStreamBackgrounded = 1 shell_id uint32, 2 command string, 3 working_directory string, 4 pid uint32?,
    5 ms_to_wait int32?, 6 reason enum(ShellBackgroundReason)?
BackgroundShellSpawnArgs = 1 command string, 2 working_directory string, 3 tool_call_id string,
    6 enable_write_shell_stdin_tool bool, 7 description string?
BackgroundShellSpawnResult = |1 success BackgroundShellSpawnSuccess, |2 error BackgroundShellSpawnError,
    |3 rejected ShellRejected, |4 permission_denied ShellPermissionDenied
BackgroundShellSpawnSuccess = 1 shell_id uint32, 2 command string, 3 working_directory string, 4 pid uint32?
BackgroundShellSpawnError = 1 command string, 2 working_directory string, 3 error string
WriteShellStdinArgs = 1 shell_id uint32, 2 chars string
WriteShellStdinResult = |1 success bytes(WriteShellStdinSuccess), |2 error WriteShellStdinError
WriteShellStdinError = 1 error string
"""
