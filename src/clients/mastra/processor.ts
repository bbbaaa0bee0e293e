import { askedIn, withRecalled, type PromptMessage } from '../recall-in-prompt.ts';
import { createTurnMemory, endsTurn, type Speaker, type TurnMemoryOptions } from '../turn-memory.ts';

/** The part of Mastra's request context that is used. */
interface ProcessorContext {
  get(key: string): unknown;
}

export interface CairnProcessorOptions extends TurnMemoryOptions {
  /** The user whose memories are recalled and stored, or a function that finds the user in the request context. */
  readonly userId: string | ((context: ProcessorContext) => string);
  /**
   * The conversation to which stored messages belong, or a function that finds it. By default it is the thread of
   * Mastra's own memory, if the agent has one; else messages belong to none.
   */
  readonly sessionId?: string | ((context: ProcessorContext) => string) | undefined;
}

/** The part of each call that the processor uses. Mastra gives a processor one `state` for each request. */
interface Call {
  readonly state: Record<string, unknown>;
  readonly requestContext?: ProcessorContext | undefined;
}

/** A `Processor`, which belongs into both `inputProcessors` and `outputProcessors` of an agent. */
export interface CairnProcessor {
  readonly id: 'cairn-memory';
  readonly processLLMRequest: <Message extends PromptMessage>(
    call: Call & { readonly prompt: Message[]; readonly abortSignal?: AbortSignal | undefined },
  ) => Promise<{ prompt: Message[] }>;
  readonly processOutputResult: <Message>(
    call: Call & {
      readonly messages: Message[];
      readonly result: { readonly text: string; readonly finishReason: string };
    },
  ) => Message[];
}

/** Data that the processor keeps in the state of a request. */
interface Kept {
  asked?: string;
  recalled?: Promise<string>;
}

/**
 * Makes a processor that gives an agent a memory. Before the model is called, memories that help to answer the user's
 * last message are recalled, once a request, and inserted before that message. They are sent to the model but not
 * stored in Mastra's own threads. After the final reply, messages are stored in the background. If a recall or store
 * fails, the agent goes on.
 * @example const memory = cairnProcessor({ client, userId: (context) => context.get('user') as string }); new Agent({
 *   name, instructions, model, inputProcessors: [memory], outputProcessors: [memory] });
 */
export function cairnProcessor(options: CairnProcessorOptions): CairnProcessor {
  const memory = createTurnMemory(options);
  return {
    id: 'cairn-memory',
    async processLLMRequest({ prompt, state, requestContext = NO_CONTEXT, abortSignal }) {
      const kept: Kept = state;
      kept.asked ??= askedIn(prompt);
      kept.recalled ??= memory.recall(kept.asked, () => speakerOf(options, requestContext), abortSignal);
      return { prompt: withRecalled(prompt, await kept.recalled) };
    },
    processOutputResult({ messages, state, result, requestContext = NO_CONTEXT }) {
      const { asked = '' }: Kept = state;
      const speaker = () => speakerOf(options, requestContext);
      if (endsTurn(result.finishReason)) memory.capture({ speaker, asked, answer: result.text });
      return messages;
    },
  };
}

const NO_CONTEXT: ProcessorContext = { get: () => undefined };

function speakerOf({ userId, sessionId }: CairnProcessorOptions, context: ProcessorContext): Speaker {
  const user = typeof userId === 'function' ? userId(context) : userId;
  const session = typeof sessionId === 'function' ? sessionId(context) : sessionId;
  return { userId: user, sessionId: session ?? threadOf(context) };
}

/** Returns the id of the request's conversation thread in Mastra's own memory; undefined if the agent has none. */
function threadOf(context: ProcessorContext): string | undefined {
  const memory = context.get('MastraMemory') as { readonly thread?: { readonly id?: unknown } } | undefined;
  const id = memory?.thread?.id;
  return typeof id === 'string' ? id : undefined;
}
