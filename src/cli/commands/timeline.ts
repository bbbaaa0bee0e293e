import type { TimelineItem } from '../../api/schemas/memory-replies.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeMoment } from '../show-hits.ts';
import { print } from '../terminal.ts';

export interface TimelineCommandOptions extends ConnectionOptions {
  readonly before: number;
  readonly after: number;
  readonly session?: boolean;
  readonly json?: boolean;
}

/** Runs `cairn timeline ID`: prints the memories before and after a memory. */
export async function timeline(id: string, options: TimelineCommandOptions): Promise<void> {
  const parameters = new URLSearchParams({
    before: String(options.before),
    after: String(options.after),
    session: String(options.session ?? false),
  });
  const around = await connect(options).get<TimelineItem>(
    `/memory/${encodeURIComponent(id)}/timeline?${parameters.toString()}`,
  );
  if (options.json) return print(JSON.stringify(around, null, 2));
  const { before, anchor, after } = around;
  print(
    ...before.map((memory) => describeMoment(memory)),
    describeMoment(anchor, { isAnchor: true }),
    ...after.map((memory) => describeMoment(memory)),
  );
}
