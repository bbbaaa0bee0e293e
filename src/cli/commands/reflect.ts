import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { counted, dim, print } from '../terminal.ts';

export interface ReflectCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly wait: boolean;
}

const WAIT_MS = 60_000;

/**
 * Runs `cairn reflect`: starts a reflection, in which the language model writes down conclusions from memories. With
 * `wait` it waits up to a minute and prints the conclusions.
 * @throws CliError if the job has failed
 */
export async function reflect({ user, session, wait, ...options }: ReflectCommandOptions): Promise<void> {
  const reply = await connect(options).reflect({
    wait: wait ? WAIT_MS : undefined,
    user_id: user,
    session_id: session,
  });
  const { job_id: id, state } = reply;
  const { reflections, error } = 'reflections' in reply ? reply : {};
  if (error !== undefined) throw new CliError(`job ${id} is ${state}: ${error.message}`);
  if (reflections === undefined) {
    return print(`${id}  queued${wait ? `, still being worked on after ${WAIT_MS / 1000} s` : ''}`);
  }
  print(
    reflections.length === 0
      ? 'Nothing new follows from them.'
      : counted(reflections.length, 'reflection', 'reflections'),
  );
  for (const { id: reflection, content } of reflections.toReversed()) print('', dim(reflection), content);
}
