import { connect, type ConnectionOptions } from '../client.ts';
import { describeMoment } from '../show-hits.ts';
import { print } from '../terminal.ts';

export interface TimelineCommandOptions extends ConnectionOptions {
  readonly before: number;
  readonly after: number;
  readonly session?: boolean;
  readonly json?: boolean;
}

/** Runs `cairn timeline ID`: prints a memory with the memories before and after it in time. */
export async function timeline(id: string, options: TimelineCommandOptions): Promise<void> {
  const { before: first, after: last, session = false } = options;
  const around = await connect(options).getTimeline({ id, before: first, after: last, session });
  if (options.json) return print(JSON.stringify(around, null, 2));
  const { before, anchor, after } = around;
  print(
    ...before.map((memory) => describeMoment(memory)),
    describeMoment(anchor, { isAnchor: true }),
    ...after.map((memory) => describeMoment(memory)),
  );
}
