import { z } from 'zod';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Completion, EmbedOptions, LanguageModel } from '../ports.ts';
import { estimateTokens } from '../text/tokens.ts';
import { createOpenAiClient, isOpenAiItself, type OpenAiClient } from './openai-client.ts';

/**
 * Greatest size of a reply (bytes): more than any requested answer takes, even from servers that also send the model's
 * reasoning.
 */
const MAX_REPLY_BYTES = 1_048_576;

type Request = Parameters<LanguageModel['complete']>[0];

/**
 * Creates a language model that calls any server with OpenAI's `/chat/completions`. One answer is one request;
 * `OM_LLM_TIMEOUT_MS` limits its time from connecting to the last byte. If the model does not accept the parameter
 * `temperature`, each call of `complete` that is refused for it rejects with EngineError `conflict`; requests that are
 * sent later do not have the parameter.
 */
export function createOpenAiLanguageModel(config: Config, model: string): LanguageModel {
  // Reasoning models take no temperature, and their names do not show it. The first refusal is remembered.
  let takesTemperature = true;
  // Which calls were refused for it: a parallel call may fail for another reason.
  const refusals = new WeakSet<EngineError>();
  const client = createOpenAiClient({
    role: 'language model',
    baseUrl: config.OM_LLM_BASE_URL,
    apiKey: config.OM_LLM_API_KEY,
    timeoutMs: config.OM_LLM_TIMEOUT_MS,
    maxReplyBytes: MAX_REPLY_BYTES,
    settings: {
      baseUrl: 'OM_LLM_BASE_URL',
      apiKey: 'OM_LLM_API_KEY',
      model: 'OM_LLM_MODEL',
      timeout: 'OM_LLM_TIMEOUT_MS',
    },
    badRequest(status, param) {
      const error = client.failed(`was refused (HTTP ${status}): check OM_LLM_MODEL`);
      if (param === 'temperature') {
        takesTemperature = false;
        refusals.add(error);
      }
      return error;
    },
  });
  // OpenAI's newer models accept only `max_completion_tokens`, most compatible servers only `max_tokens`.
  const limit = isOpenAiItself(config.OM_LLM_BASE_URL) ? 'max_completion_tokens' : 'max_tokens';

  async function ask(
    { instructions, input, maxTokens }: Request,
    signal: AbortSignal | undefined,
    onReply: EmbedOptions['onReply'],
  ): Promise<unknown> {
    return client.call(
      ({ chat }) =>
        chat.completions.create(
          {
            model,
            messages: [
              { role: 'system', content: instructions },
              { role: 'user', content: input },
            ],
            [limit]: maxTokens,
            ...(takesTemperature ? { temperature: 0 } : {}),
          },
          { signal: signal ?? null },
        ),
      onReply,
    );
  }

  return {
    provider: 'openai',
    model,
    prepare: () => client.prepare(),
    async complete(request, signal, onReply) {
      const sentTemperature = takesTemperature;
      const reply = await ask(request, signal, onReply).catch((error: unknown) => {
        if (!sentTemperature || !refusals.has(error as EngineError)) throw error;
        throw new EngineError('conflict', 'the language model takes no temperature: ask again, without one');
      });
      return readCompletion(reply, request, client);
    },
  };
}

const count = z.number().int().nonnegative().optional().catch(undefined);
const completionSchema = z.object({
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
      }),
    )
    .min(1),
  // Some servers count no tokens, or count only prompt or completion.
  usage: z.object({ prompt_tokens: count, completion_tokens: count }).nullish().catch(null),
});

/**
 * Reads the model's answer from a reply. If the server does not report the number of tokens, it is estimated.
 * @throws EngineError `unavailable` for a reply of another form; `invalid` for an answer that was cut off, withheld or
 *   empty, which is not a failure of the server
 */
function readCompletion(
  reply: unknown,
  { instructions, input }: Request,
  { refused, declined }: OpenAiClient,
): Completion {
  const parsed = completionSchema.safeParse(reply);
  if (!parsed.success) throw refused('holds no completion');
  const { choices, usage } = parsed.data;
  const { message, finish_reason: reason } = choices[0]!;
  if (message.refusal || reason === 'content_filter') throw declined('is a refusal');
  if (reason === 'length') throw declined('was cut off at the most tokens that it may have');
  const text = message.content ?? '';
  if (text.trim() === '') throw declined('is empty');
  return {
    text,
    inputTokens: usage?.prompt_tokens ?? estimateTokens(instructions) + estimateTokens(input),
    outputTokens: usage?.completion_tokens ?? estimateTokens(text),
  };
}
