import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished, expect, test } from 'vitest';
import { createChannel } from '../../../src/api/processes/channel.ts';
import { EngineError } from '../../../src/engine/errors.ts';

/** Starts a process that receives messages and answers none. */
function startSilent() {
  const child = spawn(process.execPath, ['-e', `process.on('message', () => {})`], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

const OVER = new EngineError('unavailable', 'the process ended');

test('a question after the end of the other process is refused, as those that wait are', async () => {
  const child = startSilent();
  const channel = createChannel(child, {});
  const waiting = expect(channel.ask('anything')).rejects.toBe(OVER);
  channel.fail(OVER);
  await waiting;
  // The process receives this question, and would never answer it.
  await expect(channel.ask('anything')).rejects.toBe(OVER);
});

test('a question that cannot be sent is refused as unavailable, without its text', async () => {
  const child = startSilent();
  const channel = createChannel(child, {});
  child.disconnect();
  await once(child, 'exit');
  await expect(channel.ask('anything', 'canary')).rejects.toMatchObject({ code: 'unavailable' });
  const other = createChannel(startSilent(), {});
  await expect(other.ask('anything', () => 'canary')).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.not.stringContaining('canary'),
  });
});
