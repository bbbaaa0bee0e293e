// The model of the chat. With OPENAI_API_KEY it is one of OpenAI, or of any server with its API (OPENAI_BASE_URL, MODEL).
// Without a key it is a stand-in, which says back what was recalled for a question.
import { SimpleChatModel } from '@langchain/core/language_models/chat_models';
import { ChatOpenAI } from '@langchain/openai';

class StandIn extends SimpleChatModel {
  _llmType() {
    return 'stand-in';
  }

  bindTools() {
    return this;
  }

  /** What was recalled stands behind the instructions. */
  async _call(messages) {
    if (!messages.at(-1).text.endsWith('?')) return 'Noted.';
    const [, remembered] = /\[memory [^\]]+\] (.+[^?\n])$/m.exec(messages[0].text) ?? [];
    return remembered === undefined ? 'I do not know.' : `You told me: ${remembered}`;
  }
}

export const model = process.env.OPENAI_API_KEY
  ? new ChatOpenAI({
      model: process.env.MODEL ?? 'gpt-4.1-mini',
      configuration: { baseURL: process.env.OPENAI_BASE_URL },
    })
  : new StandIn({});
