import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { readConfig } from '../src/engine/config.ts';
import { createLogger } from '../src/process.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

function logWith(settings: Record<string, string>, thread?: string) {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { lines, logger: createLogger(readConfig(settings), thread, { write }) };
}

test.each([
  ['silent', []],
  ['error', ['error']],
  ['warn', ['warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['debug', ['debug', 'info', 'warn', 'error']],
])('OM_LOG_LEVEL=%s logs %j', (level, expected) => {
  const { lines, logger } = logWith({ OM_LOG_LEVEL: level });
  for (const name of LEVELS) logger[name]({}, name);
  expect(lines.map(({ msg }) => msg)).toEqual(expected);
});

test('a thread is named on its lines, and no process or host', () => {
  const { lines, logger } = logWith({}, 'worker');
  logger.info({ jobId: 'a', requestId: 'b' }, 'event');
  expect(lines).toEqual([
    { level: 30, time: expect.any(Number), thread: 'worker', jobId: 'a', requestId: 'b', msg: 'event' },
  ]);
});

test('fields that would hold what was said, a key or a file name never reach a line, wherever they stand', () => {
  const { lines, logger } = logWith({});
  const secrets = { content: 'kanari', Query: 'kanari', authorization: 'kanari', fileName: 'kanari', 'x-api-key': 'k' };
  logger.info({ ...secrets, status: 200, request: { headers: secrets, rows: [secrets, 7] } }, 'event');
  expect(JSON.stringify(lines)).not.toContain('kanari');
  expect(lines[0]).toMatchObject({
    content: '[redacted]',
    status: 200,
    request: { rows: [{ Query: '[redacted]' }, 7] },
  });
});

test('a field that is deeper than lines are, or that holds itself, is cut off', () => {
  const { lines, logger } = logWith({});
  const loop: Record<string, unknown> = { content: 'kanari' };
  loop['self'] = loop;
  logger.info({ loop }, 'event');
  expect(JSON.stringify(lines)).not.toContain('kanari');
  expect(JSON.stringify(lines)).toContain('[too deep]');
});

test('a part that dies while the process ends changes neither the end nor its code', async () => {
  const file = (name: string) => JSON.stringify(new URL(`../src/${name}`, import.meta.url).href);
  const script = `
    import { readConfig } from ${file('engine/config.ts')};
    import { createLogger, endOnSignals } from ${file('process.ts')};
    const config = readConfig({});
    const end = endOnSignals(config, createLogger(config), async () => {
      end('executor died', 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      console.log('closed');
    });
    process.kill(process.pid, 'SIGTERM');
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  expect({ code, isClosed: output.includes('closed') }).toEqual({ code: 0, isClosed: true });
});
