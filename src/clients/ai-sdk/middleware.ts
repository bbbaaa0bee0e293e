import { askedIn, textOf, withRecalled, type PromptMessage } from '../recall-in-prompt.ts';
import { createTurnMemory, endsTurn, type TurnMemoryOptions } from '../turn-memory.ts';

export interface WithCairnOptions extends TurnMemoryOptions {
  /** The user whose memories are recalled and stored. */
  readonly userId: string;
  /** The conversation to which stored messages belong; by default they belong to none. */
  readonly sessionId?: string | undefined;
}

/** Parameters of a call of the model, with the fields that are used here. */
interface CallParams {
  readonly prompt: PromptMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

interface FinishReason {
  readonly unified: string;
}

interface Generated {
  readonly content: readonly object[];
  readonly finishReason: FinishReason;
}

interface Streamed {
  readonly stream: ReadableStream<unknown>;
}

/** A `LanguageModelV4Middleware`, as `wrapLanguageModel` of `ai` takes it. */
export interface CairnMiddleware {
  readonly specificationVersion: 'v4';
  readonly transformParams: <Params extends CallParams>(call: { readonly params: Params }) => Promise<Params>;
  readonly wrapGenerate: <Result extends Generated>(call: {
    readonly doGenerate: () => PromiseLike<Result>;
    readonly params: CallParams;
  }) => Promise<Result>;
  readonly wrapStream: <Result extends Streamed>(call: {
    readonly doStream: () => PromiseLike<Result>;
    readonly params: CallParams;
  }) => Promise<Result>;
}

/**
 * Greatest number of turns (a message of the user and the model calls that answer it) whose recalled memories are kept.
 */
const MAX_KEPT = 100;

/**
 * Makes a middleware that gives a model a memory. Before a call, memories that help to answer the user's last message
 * are recalled, and inserted before that message; several model calls for one message share one recall. After the final
 * reply, the user's message is stored in the background; `capture` can add the reply, or store nothing. If a recall or
 * store fails, the model is called all the same.
 * @example wrapLanguageModel({ model, middleware: withCairn({ client, userId: 'ana', sessionId: 'chat-7' }) })
 */
export function withCairn(options: WithCairnOptions): CairnMiddleware {
  const memory = createTurnMemory(options);
  const speaker = { userId: options.userId, sessionId: options.sessionId };
  const recallOnce = keepRecalls((asked, signal) => memory.recall(asked, speaker, signal));
  const capture = (params: CallParams, answer: string, finishReason: FinishReason) => {
    if (endsTurn(finishReason.unified)) memory.capture({ speaker, asked: askedIn(params.prompt), answer });
  };
  return {
    specificationVersion: 'v4',
    async transformParams({ params }) {
      const recalled = await recallOnce(params);
      return { ...params, prompt: withRecalled(params.prompt, recalled) };
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      capture(params, textOf(result.content), result.finishReason);
      return result;
    },
    async wrapStream({ doStream, params }) {
      const result = await doStream();
      const listener = listen((answer, finishReason) => capture(params, answer, finishReason));
      return { ...result, stream: result.stream.pipeThrough(listener) };
    },
  };
}

/**
 * Wraps `recall` so that it is called once for each turn. A turn begins with a model call whose prompt ends with a
 * message of the user. In later calls of the turn, tool results follow that message, and the kept result of `recall` is
 * returned.
 */
function keepRecalls(
  recall: (asked: string, signal: AbortSignal | undefined) => Promise<string>,
): (params: CallParams) => Promise<string> {
  const kept = new Map<string, Promise<string>>();
  return ({ prompt, abortSignal }) => {
    const asked = askedIn(prompt);
    const turn = `${prompt.filter(({ role }) => role === 'user').length}\n${asked}`;
    const known = prompt.at(-1)?.role === 'user' ? undefined : kept.get(turn);
    if (known !== undefined) return known;
    const recalled = recall(asked, abortSignal);
    kept.delete(turn); // The newest turn stands last.
    kept.set(turn, recalled);
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
    return recalled;
  };
}

/**
 * Makes a transform that passes a model's stream on unchanged, and calls `onFinish` with the whole text when the model
 * has finished.
 */
function listen(onFinish: (answer: string, finishReason: FinishReason) => void): TransformStream<unknown, unknown> {
  const blocks = new Map<string, string>();
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      const part = chunk as { type: string; id: string; delta: string; finishReason: FinishReason };
      if (part.type === 'text-delta') blocks.set(part.id, (blocks.get(part.id) ?? '') + part.delta);
      if (part.type === 'finish') onFinish([...blocks.values()].join('\n'), part.finishReason);
    },
  });
}
