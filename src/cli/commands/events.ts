import { setTimeout as pause } from 'node:timers/promises';
import type { eventPage } from '../../api/schemas/events.ts';
import type { Wire } from '../../api/schemas/values.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { print } from '../terminal.ts';

type EventPageItem = Wire<typeof eventPage>;

/** Time between two requests for new events (ms). */
const FOLLOW_EVERY_MS = 1_000;

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
  const { follow = false, kinds, user, json = false } = options;
  const client = connect(options);
  let cursor = options.cursor ?? (follow ? 'latest' : undefined);
  for (;;) {
    const page = await client.listEvents({ limit: 1000, cursor, kinds, user_id: user });
    for (const event of page.items) print(json ? JSON.stringify(event) : lineOf(event));
    cursor = page.cursor;
    if (page.has_more) continue;
    if (!follow) return;
    await pause(FOLLOW_EVERY_MS);
  }
}

function lineOf({ at, kind, id, user_id: userId }: EventPageItem['items'][number]): string {
  const owner = userId === null || userId === '' ? '' : `  ${userId}`;
  return `${new Date(at).toISOString()}  ${kind.padEnd('memory.contradicted'.length)}  ${id ?? ''}${owner}`;
}
