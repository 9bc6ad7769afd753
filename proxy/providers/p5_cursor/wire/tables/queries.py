"""Questions of the service to the user, and the answers."""

TABLE = """\
InteractionQuery = 1 id uint32, |2 web_search_request_query WebSearchRequestQuery,
    |3 ask_question_interaction_query AskQuestionInteractionQuery,
    |4 switch_mode_request_query SwitchModeRequestQuery, |5 exa_search_request_query bytes(ExaSearchRequestQuery),
    |6 exa_fetch_request_query bytes(ExaFetchRequestQuery), |7 create_plan_request_query CreatePlanRequestQuery,
    |8 setup_vm_environment_args bytes(SetupVmEnvironmentArgs), |9 web_fetch_request_query WebFetchRequestQuery,
    |10 pr_management_request_query bytes(PrManagementRequestQuery), |11 mcp_auth_request_query McpAuthRequestQuery,
    |12 generate_image_request_query GenerateImageRequestQuery, |13 replace_env_args bytes(ReplaceEnvArgs)
InteractionResponse = 1 id uint32, |2 web_search_request_response WebSearchRequestResponse,
    |3 ask_question_interaction_response AskQuestionInteractionResponse,
    |4 switch_mode_request_response SwitchModeRequestResponse,
    |5 exa_search_request_response ExaSearchRequestResponse, |6 exa_fetch_request_response ExaFetchRequestResponse,
    |7 create_plan_request_response CreatePlanRequestResponse,
    |8 setup_vm_environment_result SetupVmEnvironmentResult, |9 web_fetch_request_response WebFetchRequestResponse,
    |10 pr_management_result bytes(PrManagementResult), |11 mcp_auth_request_response McpAuthRequestResponse,
    |12 generate_image_request_response GenerateImageRequestResponse, |13 replace_env_result bytes(ReplaceEnvResult)
WebSearchRequestQuery = 1 args WebSearchArgs
WebSearchArgs = 1 search_term string, 2 tool_call_id string
WebSearchRequestResponse = |1 approved WebSearchRequestResponse.Approved,
    |2 rejected WebSearchRequestResponse.Rejected
WebSearchRequestResponse.Approved = (empty)
WebSearchRequestResponse.Rejected = 1 reason string
WebFetchRequestQuery = 1 args WebFetchArgs, 2 skip_approval bool
WebFetchArgs = 1 url string, 2 tool_call_id string
WebFetchRequestResponse = |1 approved WebFetchRequestResponse.Approved, |2 rejected WebFetchRequestResponse.Rejected
WebFetchRequestResponse.Approved = (empty)
WebFetchRequestResponse.Rejected = 1 reason string
AskQuestionInteractionQuery = 1 args AskQuestionArgs, 2 tool_call_id string
AskQuestionArgs = 1 title string, 2 questions AskQuestionArgs.Question[], 5 run_async bool,
    6 async_original_tool_call_id string
AskQuestionArgs.Question = 1 id string, 2 prompt string, 3 options AskQuestionArgs.Option[], 4 allow_multiple bool
AskQuestionArgs.Option = 1 id string, 2 label string
AskQuestionInteractionResponse = 1 result AskQuestionResult
AskQuestionResult = |1 success bytes(AskQuestionSuccess), |2 error AskQuestionError, |3 rejected AskQuestionRejected
AskQuestionError = 1 error_message string
AskQuestionRejected = 1 reason string
SwitchModeRequestQuery = 1 args SwitchModeArgs
SwitchModeArgs = 1 target_mode_id string, 2 explanation string?, 3 tool_call_id string
SwitchModeRequestResponse = |1 approved SwitchModeRequestResponse.Approved,
    |2 rejected SwitchModeRequestResponse.Rejected
SwitchModeRequestResponse.Approved = (empty)
SwitchModeRequestResponse.Rejected = 1 reason string
CreatePlanRequestQuery = 1 args CreatePlanArgs, 2 tool_call_id string
CreatePlanArgs = 1 plan string, 3 overview string, 4 name string, 5 is_project bool
CreatePlanRequestResponse = 1 result CreatePlanResult
CreatePlanResult = |1 success CreatePlanSuccess, |2 error CreatePlanError, 3 plan_uri string
CreatePlanError = 1 error string
McpAuthRequestQuery = 1 args McpAuthArgs
McpAuthArgs = 1 server_identifier string, 2 tool_call_id string
McpAuthRequestResponse = |1 approved McpAuthRequestResponse.Approved, |2 rejected McpAuthRequestResponse.Rejected
McpAuthRequestResponse.Approved = (empty)
McpAuthRequestResponse.Rejected = 1 reason string
GenerateImageRequestQuery = 2 tool_call_id string
GenerateImageRequestResponse = |1 approved GenerateImageRequestResponse.Approved,
    |2 rejected GenerateImageRequestResponse.Rejected
GenerateImageRequestResponse.Approved = 1 description string
GenerateImageRequestResponse.Rejected = 1 reason string
CreatePlanSuccess = (empty)
SetupVmEnvironmentResult = |1 success bytes(SetupVmEnvironmentSuccess)
ExaSearchRequestResponse = |1 approved bytes(ExaSearchRequestResponse.Approved),
    |2 rejected bytes(ExaSearchRequestResponse.Rejected)
ExaFetchRequestResponse = |1 approved bytes(ExaFetchRequestResponse.Approved),
    |2 rejected bytes(ExaFetchRequestResponse.Rejected)
"""
