import { CairnError } from './errors.ts';
import type { Document, Job } from './generated/types.ts';

/** A server-sent event, with its data parsed from JSON. */
export interface ServerEvent {
  readonly event: string;
  readonly data: unknown;
  /**
   * Cursor of the event in its stream, from which the stream can be resumed; undefined if the stream has no cursors.
   */
  readonly id?: string;
}

/** Final states of a job. The state `failed` is not final: such a job waits for its next attempt. */
const ENDS_OF_JOBS: readonly string[] = ['done', 'dead', 'cancelled'] satisfies Job['state'][];
/** Final states of a document. */
const ENDS_OF_DOCUMENTS: readonly string[] = ['ready', 'empty', 'failed', 'cancelled'] satisfies Document['state'][];

/**
 * Tells whether an event is the last of its stream: the job or document was removed, or has reached a final state. The
 * feed of all changes has no last event.
 * @param isOfJob true for a stream about a job, false for any other
 */
export function isLast({ event, data }: ServerEvent, isOfJob: boolean): boolean {
  if (event !== 'state') return event === 'gone';
  return (isOfJob ? ENDS_OF_JOBS : ENDS_OF_DOCUMENTS).includes((data as { readonly state: string }).state);
}

/** Greatest length of an event that is read, in UTF-16 code units. The server's own events are far shorter. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

/**
 * Yields the events of a stream of server-sent events whose data are JSON. Comments and events without data are
 * skipped.
 * @throws CairnError `unreachable` if the connection breaks off, `no_cairn` if the data are not JSON or an event is
 *   longer than 16 Mi characters; the reason of the signal if it aborts
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop()!;
      if (rest.length > MAX_EVENT_LENGTH) throw new CairnError('no_cairn', 'the stream holds no events');
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event !== undefined) yield event;
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof CairnError) throw error;
    throw new CairnError('unreachable', 'the stream of events broke off', { cause: error });
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  const fields: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const [, name, value] = /^(\w+): ?(.*)$/s.exec(line.replace(/\r$/, '')) ?? [];
    if (name !== undefined) fields[name] = fields[name] === undefined ? value! : `${fields[name]}\n${value}`;
  }
  if (fields.data === undefined) return undefined;
  const { event = 'message', data, id } = fields;
  try {
    return { event, data: JSON.parse(data) as unknown, ...(id === undefined ? {} : { id }) };
  } catch (cause) {
    throw new CairnError('no_cairn', 'the data of an event are no JSON: what answers is no Cairn server', { cause });
  }
}
