"""Work that the service asks of the client, and how the client answers: the envelopes of requests and results."""

TABLE = """\
ExecServerMessage = 1 id uint32, |2 shell_args ShellArgs, |3 write_args WriteArgs, |4 delete_args DeleteArgs,
    |5 grep_args GrepArgs, |7 read_args ReadArgs, |8 ls_args LsArgs, |9 diagnostics_args DiagnosticsArgs,
    |10 request_context_args RequestContextArgs, |11 mcp_args McpArgs, |14 shell_stream_args ShellArgs,
    15 exec_id string, |16 background_shell_spawn_args BackgroundShellSpawnArgs,
    |17 list_mcp_resources_exec_args ListMcpResourcesExecArgs,
    |18 read_mcp_resource_exec_args ReadMcpResourceExecArgs, 19 span_context SpanContext?, |20 fetch_args FetchArgs,
    |21 record_screen_args bytes(RecordScreenArgs), |22 computer_use_args bytes(ComputerUseArgs),
    |23 write_shell_stdin_args WriteShellStdinArgs, |27 execute_hook_args bytes(ExecuteHookArgs),
    |28 subagent_args bytes(SubagentArgs), |29 redacted_read_args ReadArgs,
    |30 force_background_shell_args bytes(ForceBackgroundShellArgs),
    |31 force_background_subagent_args bytes(ForceBackgroundSubagentArgs),
    |36 mcp_state_exec_args bytes(McpStateExecArgs), |37 subagent_await_args bytes(SubagentAwaitArgs),
    |38 smart_mode_classifier_args bytes(SmartModeClassifierArgs)
ExecClientMessage = 1 id uint32, |2 shell_result ShellResult, |3 write_result WriteResult,
    |4 delete_result DeleteResult, |5 grep_result GrepResult, |7 read_result ReadResult, |8 ls_result LsResult,
    |9 diagnostics_result DiagnosticsResult, |10 request_context_result RequestContextResult,
    |11 mcp_result McpResult, |14 shell_stream ShellStream, 15 exec_id string,
    |16 background_shell_spawn_result BackgroundShellSpawnResult,
    |17 list_mcp_resources_exec_result ListMcpResourcesExecResult,
    |18 read_mcp_resource_exec_result ReadMcpResourceExecResult, |20 fetch_result FetchResult,
    |21 record_screen_result bytes(RecordScreenResult), |22 computer_use_result bytes(ComputerUseResult),
    |23 write_shell_stdin_result WriteShellStdinResult, |27 execute_hook_result bytes(ExecuteHookResult),
    |28 subagent_result bytes(SubagentResult), |29 redacted_read_result ReadResult,
    |30 force_background_shell_result bytes(ForceBackgroundShellResult),
    |31 force_background_subagent_result bytes(ForceBackgroundSubagentResult),
    |36 mcp_state_exec_result bytes(McpStateExecResult), |37 subagent_await_result bytes(SubagentAwaitResult),
    |38 smart_mode_classifier_result bytes(SmartModeClassifierResult)
ExecServerControlMessage = |1 abort ExecServerAbort
ExecServerAbort = 1 id uint32
ExecClientControlMessage = |1 stream_close ExecClientStreamClose, |2 throw ExecClientThrow,
    |3 heartbeat ExecClientHeartbeat
ExecClientStreamClose = 1 id uint32
ExecClientThrow = 1 id uint32, 2 error string, 3 stack_trace string?, 4 error_code string?
ExecClientHeartbeat = 1 id uint32
SpanContext = 1 trace_id string, 2 span_id string, 3 trace_flags uint32?, 4 trace_state string?
"""
