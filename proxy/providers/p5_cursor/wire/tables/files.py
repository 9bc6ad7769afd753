"""Requests and results about files and folders."""

TABLE = """\
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
"""
