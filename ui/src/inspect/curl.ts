// A model's request as a command for a shell. No key stands in it.
import { hereDocument } from "../parts/shell";

/** body: JSON as an OpenAI-compatible endpoint takes it. */
export const curl = (body: string): string =>
  'curl "${OPENAI_BASE_URL:?is not set}/chat/completions" \\\n  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
  + `  -H 'Content-Type: application/json' ${hereDocument(body)}`;
