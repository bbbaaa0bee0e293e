import { setTimeout as pause } from 'node:timers/promises';

/** Places where a test makes a process fail. Each lies between two things that a crash must not tear apart. */
export type FailpointName =
  | 'after-accept-commit'
  | 'after-parse'
  | 'before-show'
  | 'after-show'
  | 'before-embed'
  | 'after-embed'
  | 'before-encode-commit'
  | 'after-encode-commit'
  | 'during-link'
  | 'before-reason-commit'
  | 'after-dispatch'
  | 'before-ack';

const SHAPE = /^(?<name>[a-z-]+):(?<action>throw|kill|hang|spin|delay):(?<count>\d{1,6})$/;
const DELAY_MS = 2_000;

/**
 * `CAIRN_FAILPOINT=<name>:<throw|kill|hang|spin|delay>:<count>` acts when this thread comes by for the count-th time, once. It is no
 * setting: it is read only where NODE_ENV is `test`, and everywhere else this does nothing.
 */
export const failpoint: (name: FailpointName) => Promise<void> | undefined = createFailpoint(process.env);

function createFailpoint({ NODE_ENV, CAIRN_FAILPOINT = '' }: NodeJS.ProcessEnv) {
  if (NODE_ENV !== 'test' || CAIRN_FAILPOINT === '') return () => undefined;
  const { name, action, count } = SHAPE.exec(CAIRN_FAILPOINT)?.groups ?? {};
  if (name === undefined) throw new Error(`CAIRN_FAILPOINT=${CAIRN_FAILPOINT}: expected name:action:count`);
  let left = Number(count);
  return (passed: FailpointName) => (passed === name && --left === 0 ? act(passed, action) : undefined);
}

async function act(name: FailpointName, action: string | undefined): Promise<void> {
  if (action === 'throw') throw new Error(`failpoint ${name}`);
  if (action === 'kill') process.kill(process.pid, 'SIGKILL');
  while (action === 'spin');
  await pause(action === 'delay' ? DELAY_MS : 2 ** 31 - 1);
}
