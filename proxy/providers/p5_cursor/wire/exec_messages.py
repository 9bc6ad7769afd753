"""Work that the service asks of the client, as messages. `schema.py` explains the rows."""

TABLES = {
    # Work that the service asks of the client, and how the client answers: the envelopes of requests and results
    "execs": """\
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
""",
    # Requests and results about files and folders
    "files": """\
ReadArgs = 1 path string, 2 tool_call_id string, 4 offset int32?, 5 limit uint32?, 6 encoding_hint string?
ReadResult = |1 success ReadSuccess, |2 error ReadError, |3 rejected ReadRejected, |4 file_not_found ReadFileNotFound,
    |5 permission_denied ReadPermissionDenied, |6 invalid_file ReadInvalidFile
ReadSuccess = 1 path string, |2 content string, 3 total_lines int32, 4 file_size int64, |5 data bytes,
    6 truncated bool, 7 output_blob_id bytes?, 8 range_applied bool
ReadError = 1 path string, 2 error string
ReadRejected = 1 path string, 2 reason string
ReadFileNotFound = 1 path string
ReadPermissionDenied = 1 path string
ReadInvalidFile = 1 path string, 2 reason string
WriteArgs = 1 path string, 2 file_text string, 3 tool_call_id string, 4 return_file_content_after_write bool,
    5 file_bytes bytes, 6 encoding_hint string?
WriteResult = |1 success WriteSuccess, |3 permission_denied WritePermissionDenied, |4 no_space WriteNoSpace,
    |5 error WriteError, |6 rejected WriteRejected
WriteSuccess = 1 path string, 2 lines_created int32, 3 file_size int32, 4 file_content_after_write string?
WritePermissionDenied = 1 path string, 2 directory string, 3 operation string, 4 error string, 5 is_readonly bool
WriteNoSpace = 1 path string
WriteError = 1 path string, 2 error string
WriteRejected = 1 path string, 2 reason string
DeleteArgs = 1 path string, 2 tool_call_id string
DeleteResult = |1 success DeleteSuccess, |2 file_not_found DeleteFileNotFound, |3 not_file bytes(DeleteNotFile),
    |4 permission_denied DeletePermissionDenied, |5 file_busy bytes(DeleteFileBusy), |6 rejected DeleteRejected,
    |7 error DeleteError
DeleteSuccess = 1 path string, 2 deleted_file string, 3 file_size int64, 4 prev_content string
DeleteFileNotFound = 1 path string
DeleteRejected = 1 path string, 2 reason string
DeleteError = 1 path string, 2 error string
DeletePermissionDenied = 1 path string, 2 client_visible_error string, 3 is_readonly bool
GrepArgs = 1 pattern string, 2 path string?, 3 glob string?, 4 output_mode string?, 5 context_before int32?,
    6 context_after int32?, 7 context int32?, 8 case_insensitive bool?, 9 type string?, 10 head_limit int32?,
    11 multiline bool?, 12 sort string?, 13 sort_ascending bool?, 14 tool_call_id string,
    15 sandbox_policy bytes(SandboxPolicy)?, 16 offset int32?
GrepResult = |1 success GrepSuccess, |2 error GrepError
GrepSuccess = 1 pattern string, 2 path string, 3 output_mode string, 4 workspace_results map<string,GrepUnionResult>,
    5 active_editor_result GrepUnionResult?
GrepError = 1 error string
GrepUnionResult = |1 count GrepCountResult, |2 files GrepFilesResult, |3 content GrepContentResult
GrepCountResult = 1 counts GrepFileCount[], 2 total_files int32, 3 total_matches int32, 4 client_truncated bool,
    5 ripgrep_truncated bool, 6 head_limit_applied int32?, 7 offset_applied int32?
GrepFileCount = 1 file string, 2 count int32
GrepFilesResult = 1 files string[], 2 total_files int32, 3 client_truncated bool, 4 ripgrep_truncated bool,
    5 head_limit_applied int32?, 6 offset_applied int32?
GrepContentResult = 1 matches GrepFileMatch[], 2 total_lines int32, 3 total_matched_lines int32,
    4 client_truncated bool, 5 ripgrep_truncated bool, 6 head_limit_applied int32?, 7 offset_applied int32?
GrepFileMatch = 1 file string, 2 matches GrepContentMatch[]
GrepContentMatch = 1 line_number int32, 2 content string, 3 content_truncated bool, 4 is_context_line bool
LsArgs = 1 path string, 2 ignore string[], 3 tool_call_id string, 4 sandbox_policy bytes(SandboxPolicy)?,
    5 timeout_ms uint32?
LsResult = |1 success LsSuccess, |2 error LsError, |3 rejected LsRejected, |4 timeout LsTimeout
LsSuccess = 1 directory_tree_root LsDirectoryTreeNode
LsError = 1 path string, 2 error string
LsRejected = 1 path string, 2 reason string
LsTimeout = 1 directory_tree_root LsDirectoryTreeNode
LsDirectoryTreeNode = 1 abs_path string, 2 children_dirs LsDirectoryTreeNode[],
    3 children_files LsDirectoryTreeNode.File[], 4 children_were_processed bool,
    5 full_subtree_extension_counts map<string,int32>, 6 num_files int32
LsDirectoryTreeNode.File = 1 name string, 2 terminal_metadata bytes(TerminalMetadata)?
DiagnosticsArgs = 1 path string, 2 tool_call_id string
DiagnosticsResult = |1 success bytes(DiagnosticsSuccess), |2 error DiagnosticsError, |3 rejected DiagnosticsRejected,
    |4 file_not_found bytes(DiagnosticsFileNotFound), |5 permission_denied bytes(DiagnosticsPermissionDenied)
DiagnosticsRejected = 1 path string, 2 reason string
DiagnosticsError = 1 path string, 2 error string
""",
    # Requests and results about commands
    "shell": """\
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
""",
    # Requests and results about addresses and MCP servers
    "remote": """\
FetchArgs = 1 url string, 2 tool_call_id string
FetchResult = |1 success FetchSuccess, |2 error FetchError
FetchSuccess = 1 url string, 2 content string, 3 status_code int32, 4 content_type string
FetchError = 1 url string, 2 error string
McpArgs = 1 name string, 2 args map<string,Value>, 3 tool_call_id string, 4 provider_identifier string,
    5 tool_name string, 6 smart_mode_approval bytes(SmartModeApproval)?, 7 smart_mode_approval_only bool,
    8 skip_approval bool
McpResult = |1 success McpSuccess, |2 error McpError, |3 rejected McpRejected,
    |4 permission_denied McpPermissionDenied, |5 tool_not_found McpToolNotFound,
    |6 server_not_found bytes(McpServerNotFound), |7 approved bytes(McpApproved)
McpSuccess = 1 content McpToolResultContentItem[], 2 is_error bool, 3 structured_content Struct
McpToolResultContentItem = |1 text McpTextContent, |2 image McpImageContent
McpTextContent = 1 text string, 2 output_location bytes(OutputLocation)?
McpImageContent = 1 data bytes, 2 mime_type string
McpError = 1 error string
McpRejected = 1 reason string, 2 is_readonly bool
McpPermissionDenied = 1 error string, 2 is_readonly bool
McpToolNotFound = 1 name string, 2 available_tools string[]
ListMcpResourcesExecArgs = 1 server string?
ListMcpResourcesExecResult = |1 success ListMcpResourcesSuccess, |2 error ListMcpResourcesError,
    |3 rejected ListMcpResourcesRejected
ListMcpResourcesSuccess = 1 resources bytes(ListMcpResourcesExecResult.McpResource)[]
ListMcpResourcesError = 1 error string
ListMcpResourcesRejected = 1 reason string
ReadMcpResourceExecArgs = 1 server string, 2 uri string, 3 download_path string?
ReadMcpResourceExecResult = |1 success bytes(ReadMcpResourceSuccess), |2 error ReadMcpResourceError,
    |3 rejected bytes(ReadMcpResourceRejected), |4 not_found ReadMcpResourceNotFound
ReadMcpResourceError = 1 uri string, 2 error string
ReadMcpResourceNotFound = 1 uri string
""",
}
