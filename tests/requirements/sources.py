"""Where requirements come from, by name."""

from __future__ import annotations

DESIGN = "design"
"""A decision of this project alone; README.md and CONTRIBUTING.md say what follows from it."""

API = "https://platform.openai.com/docs/api-reference/responses"
CREATE = f"{API}/create"
GET = f"{API}/get"
DELETE = f"{API}/delete"
CANCEL = f"{API}/cancel"
INPUT_ITEMS = f"{API}/input-items"
OBJECT = f"{API}/object"
STREAMING = "https://platform.openai.com/docs/api-reference/responses-streaming"
ERRORS = "https://platform.openai.com/docs/guides/error-codes"
CHAT = "https://platform.openai.com/docs/api-reference/chat/create"
STATE = "https://platform.openai.com/docs/guides/conversation-state"
FUNCTIONS = "https://platform.openai.com/docs/guides/function-calling"
REASONING = "https://platform.openai.com/docs/guides/reasoning"
REMOTE_MCP = "https://platform.openai.com/docs/guides/tools-connectors-mcp"
WEB_SEARCH = "https://platform.openai.com/docs/guides/tools-web-search"
CONVERSATIONS = "https://platform.openai.com/docs/api-reference/conversations"

SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"
JSON = "https://www.rfc-editor.org/rfc/rfc8259"
HTTP = "https://www.rfc-editor.org/rfc/rfc9110"
HTTP_CODINGS = "https://www.rfc-editor.org/rfc/rfc9110#name-content-encoding"
HTTP_CONNECTION = "https://www.rfc-editor.org/rfc/rfc9110#name-connection"
FETCH_CORS = "https://fetch.spec.whatwg.org/#cors-safelisted-request-header"
MCP = "https://modelcontextprotocol.io/specification/2025-06-18/basic/transports"
MCP_TOOLS = "https://modelcontextprotocol.io/specification/2025-06-18/server/tools"
YAML = "https://yaml.org/spec/1.2.2/"

ENVOY = "https://www.envoyproxy.io/docs/envoy/latest"
EXT_PROC = f"{ENVOY}/configuration/http/http_filters/ext_proc_filter"
EXT_PROC_PROTO = f"{ENVOY}/api-v3/service/ext_proc/v3/external_processor.proto"
LOCAL_REPLIES = f"{ENVOY}/configuration/http/http_conn_man/local_reply"
TIMEOUTS = f"{ENVOY}/faq/configuration/timeouts"
EDGE = f"{ENVOY}/configuration/best_practices/edge"

VLLM = "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
LLAMA_CPP = "https://github.com/ggml-org/llama.cpp/tree/master/tools/server"
SGLANG = "https://docs.sglang.ai/basic_usage/openai_api.html"
OPENAI_PYTHON = "https://github.com/openai/openai-python"
OPENAI_NODE = "https://github.com/openai/openai-node"
OPENAI_AGENTS = "https://github.com/openai/openai-agents-python"


def bug(repository: str, number: int) -> str:
    """A public issue or pull request of another project; GitHub leads from the one to the other."""
    return f"https://github.com/{repository}/issues/{number}"
