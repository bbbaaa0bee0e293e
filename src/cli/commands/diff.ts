import { connect, type ConnectionOptions } from '../client.ts';
import { print } from '../terminal.ts';

export interface DiffOptions extends ConnectionOptions {
  readonly from: number | string;
  readonly to?: number | string;
  readonly user?: string;
  readonly session?: string;
  readonly topic?: string;
  readonly valid?: boolean;
  readonly json?: boolean;
}

/** Runs `cairn diff`: prints what changed between two times, as a text, or as the server's reply with `json`. */
export async function diff({ from, to, user, session, topic, valid, json, ...connection }: DiffOptions): Promise<void> {
  const reply = await connect(connection).diffMemories({
    axis: valid ? 'valid' : 'recorded',
    format: json ? 'json' : 'prompt',
    from,
    to,
    user_id: user,
    session_id: session,
    topic,
  });
  print(json ? JSON.stringify(reply, null, 2) : (reply.text ?? ''));
}
