import { setTimeout as pause } from 'node:timers/promises';
import type { eventPage } from '../../api/schemas/events.ts';
import type { Wire } from '../../api/schemas/values.ts';
import { readEvents } from '../../client/events.ts';
import { isCairnError } from '../../client/index.ts';
import { CliError } from '../cli-error.ts';
import { type Client, connect, ConnectionError, type ConnectionOptions, RefusalError } from '../client.ts';
import { oneLine, print } from '../terminal.ts';

type FeedEvent = Wire<typeof eventPage>['items'][number];

/** Pause before a stream that has ended is opened again (ms). */
const AGAIN_AFTER_MS = 1_000;
const KEY_ENDED = 'the key is no longer valid';

export interface EventsCommandOptions extends ConnectionOptions {
  readonly follow?: boolean;
  /**
   * Cursor after which the events begin. By default printing begins with the oldest event that is kept or, with
   * `follow`, with the first event after the start of the command.
   */
  readonly cursor?: string;
  readonly kinds?: string;
  readonly user?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn events`: prints the events that are kept, oldest first. With `--follow` it prints new events as they
 * happen, until the command is ended; events from before its start are then printed only with `--cursor`. If the
 * connection of `--follow` is lost, it is opened again, with a pause of one second.
 * @throws CliError if the events that are kept cannot be read; later, with `--follow`, only for a permanent failure,
 *   such as a key that is no longer valid
 */
export async function events(options: EventsCommandOptions): Promise<void> {
  const { follow = false, json = false } = options;
  const show = (event: FeedEvent) => print(json ? JSON.stringify(event) : lineOf(event));
  const client = connect(options);
  let cursor = options.cursor ?? (follow ? 'latest' : undefined);
  for (let more = true; more;) {
    const page = await client.listEvents({ limit: 1000, cursor, kinds: options.kinds, user_id: options.user });
    page.items.forEach(show);
    ({ cursor, has_more: more } = page);
  }
  if (!follow) return;
  // A server that stops ends its streams, or breaks them off. The next one goes on behind the last event.
  for (let trouble = ''; ;) {
    try {
      for await (const event of streamOf(client, { ...options, cursor })) {
        show(event);
        [cursor, trouble] = [event.cursor, ''];
      }
    } catch (error) {
      // What reads the stream wraps what the connection says.
      const reason = isCairnError(error) && error.cause instanceof CliError ? error.cause : error;
      // The page above was read with the key.
      if (reason instanceof RefusalError && reason.status === 401)
        throw new CliError(`${KEY_ENDED}: ${reason.message}`);
      if (!mayPass(reason)) throw reason;
      if (reason.message !== trouble) process.stderr.write(`${oneLine(reason.message)}; it is tried again\n`);
      trouble = reason.message;
    }
    await pause(AGAIN_AFTER_MS);
  }
}

/**
 * Tells whether the failure of a stream is temporary, such as a restart of the server, so that the stream should be
 * opened again.
 */
function mayPass(error: unknown): error is Error {
  if (error instanceof RefusalError) return error.status === 429 || error.status >= 500;
  return error instanceof ConnectionError || isCairnError(error, 'unreachable');
}

/**
 * Yields events as the server commits them.
 * @throws CliError once the key is no longer valid
 */
async function* streamOf(
  client: Client,
  { cursor, kinds, user }: Pick<EventsCommandOptions, 'kinds' | 'user'> & { readonly cursor: string | undefined },
): AsyncGenerator<FeedEvent> {
  const asked = Object.entries({ cursor, kinds, user_id: user }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const path = `/events?${new URLSearchParams(asked).toString()}`;
  const bytes = ReadableStream.from<Uint8Array>(client.receive(path, 'text/event-stream'));
  for await (const { event, data } of readEvents(bytes, undefined)) {
    if (event === 'gone') throw new CliError(KEY_ENDED);
    yield data as FeedEvent;
  }
}

function lineOf({ at, kind, id, user_id: userId }: FeedEvent): string {
  const owner = userId === null || userId === '' ? '' : `  ${userId}`;
  return `${new Date(at).toISOString()}  ${kind.padEnd('memory.contradicted'.length)}  ${id ?? ''}${owner}`;
}
