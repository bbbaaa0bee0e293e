import { setTimeout as pause } from 'node:timers/promises';

/**
 * Name of a point in the code at which a test makes a process fail. Each lies between two actions that a crash may
 * separate.
 */
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
  | 'during-coarsen'
  | 'after-dispatch'
  | 'before-ack'
  | 'before-read'
  | 'before-defaults'
  | 'after-defaults'
  | 'after-move-begins'
  | 'after-move-copies'
  | 'after-move-names'
  | 'after-move-marks'
  | 'after-move-completes'
  | 'after-move-cleans'
  | 'before-reseal'
  | 'after-reseal';

const SHAPE = /^(?<name>[a-z-]+):(?<action>throw|kill|exit|hang|spin|delay):(?<count>\d{1,6})$/;
/** Wait of the action `delay` (ms). */
const DELAY_MS = 2_000;

/**
 * Makes this thread fail if `CAIRN_FAILPOINT=<name>:<action>:<count>` names this point; the caller awaits what it
 * returns. It acts once, the count-th time that the thread passes. The action `throw` rejects, `kill` kills the process
 * (SIGKILL), `exit` ends a worker thread, or on the main thread the process, `hang` never resolves, `spin` blocks the
 * thread forever, and `delay` waits for two seconds. This is no setting: it is read only if NODE_ENV is `test`;
 * otherwise the function does nothing.
 * @throws Error when the module is loaded, for a value in any other form
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
  if (action === 'exit') process.exit(1);
  while (action === 'spin');
  await pause(action === 'delay' ? DELAY_MS : 2 ** 31 - 1);
}
