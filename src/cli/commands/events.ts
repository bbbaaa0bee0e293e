import { setTimeout as pause } from 'node:timers/promises';
import type { eventPage } from '../../api/schemas/events.ts';
import type { Wire } from '../../api/schemas/values.ts';
import { readEvents } from '../../client/events.ts';
import { CliError } from '../cli-error.ts';
import { type Client, connect, type ConnectionOptions } from '../client.ts';
import { print } from '../terminal.ts';

type FeedEvent = Wire<typeof eventPage>['items'][number];

/** Time after which a stream that has ended is opened again (ms). */
const AGAIN_AFTER_MS = 1_000;

/** Options of `cairn events`. */
export interface EventsCommandOptions extends ConnectionOptions {
  readonly follow?: boolean;
  /** Cursor behind which to begin; the oldest event that is kept if left out, with `follow` the newest. */
  readonly cursor?: string;
  readonly kinds?: string;
  readonly user?: string;
  readonly json?: boolean;
}

/** Runs `cairn events`: prints the events that are kept, and with `--follow` those that come, until it is ended. */
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
  // A server that stops ends its streams. The next one goes on behind the last event.
  for (;;) {
    for await (const event of streamOf(client, { ...options, cursor })) {
      show(event);
      cursor = event.cursor;
    }
    await pause(AGAIN_AFTER_MS);
  }
}

/** Yields events as the server commits them. @throws CliError once the key is no longer valid */
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
    if (event === 'gone') throw new CliError('the key is no longer valid');
    yield data as FeedEvent;
  }
}

function lineOf({ at, kind, id, user_id: userId }: FeedEvent): string {
  const owner = userId === null || userId === '' ? '' : `  ${userId}`;
  return `${new Date(at).toISOString()}  ${kind.padEnd('memory.contradicted'.length)}  ${id ?? ''}${owner}`;
}
