import { askedIn, withRecalled, type PromptMessage } from '../recall-in-prompt.ts';
import { createTurnMemory, endsTurn, type Speaker, type TurnMemoryOptions } from '../turn-memory.ts';

/** What is read of Mastra's request context. */
interface ProcessorContext {
  get(key: string): unknown;
}

export interface CairnProcessorOptions extends TurnMemoryOptions {
  /** The user whose memories are recalled and stored, or how it follows from the request context. */
  readonly userId: string | ((context: ProcessorContext) => string);
  /**
   * The conversation that stored messages belong to; by default the thread of the request, if the agent has a memory of
   * Mastra's own.
   */
  readonly sessionId?: string | ((context: ProcessorContext) => string) | undefined;
}

/** What the processor reads of each call; Mastra keeps the state of a processor for one request. */
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

/** What is kept in the state of a request. */
interface Kept {
  asked?: string;
  recalled?: Promise<string>;
}

/**
 * Gives an agent a memory. Before the model is called, what belongs to the user's last message is recalled, once a
 * request, and put before that message. It goes to the model only, and not into the threads that Mastra stores. After
 * the reply, what was said is stored in the background. A failure of either stops no agent.
 * @example
 * const memory = cairnProcessor({ client, userId: (context) => context.get('user') as string });
 * new Agent({ name, instructions, model, inputProcessors: [memory], outputProcessors: [memory] });
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

/** The thread of a request, where Mastra's own memory names it. */
function threadOf(context: ProcessorContext): string | undefined {
  const memory = context.get('MastraMemory') as { readonly thread?: { readonly id?: unknown } } | undefined;
  const id = memory?.thread?.id;
  return typeof id === 'string' ? id : undefined;
}
