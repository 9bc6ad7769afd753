"""Requests and results about addresses and MCP servers."""

TABLE = """\
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
"""
