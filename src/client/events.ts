import { CairnError } from './errors.ts';

/** A server-sent event with its data parsed. */
export interface ServerEvent {
  readonly event: string;
  readonly data: unknown;
  /** Place of the event in its stream, if the stream has places. */
  readonly id?: string;
}

/** Most characters of an event that is read: the server sends none that is near this. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

/**
 * Yields the events of a stream of server-sent events with data in JSON. Comments are skipped.
 * @throws CairnError `unreachable` if the connection breaks off; the reason of the signal if it aborts
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
      const blocks = rest.split('\n\n');
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
  return { event, data: JSON.parse(data) as unknown, ...(id === undefined ? {} : { id }) };
}
