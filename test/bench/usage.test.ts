import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const BENCH = path.resolve(import.meta.dirname, '../../bench');

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(script: string, ...args: readonly string[]): Promise<Outcome> {
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [path.join(BENCH, script), ...args])) };
  } catch (error) {
    return error as Outcome;
  }
}

test.for<[script: string, usage: string]>([
  ['scale.ts', 'npm run bench -- [--sizes'],
  ['eval.ts', 'npm run eval -- PATH'],
  ['eval-samples.ts', 'npm run eval:samples -- PATH'],
  ['measure.ts', 'npm run measure -- NAME'],
])('%s says how it is called', async ([script, usage]) => {
  const [help, wrong] = await Promise.all([run(script, '--help'), run(script, '--no-such-option')]);
  expect(help).toMatchObject({ code: 0, stderr: '' });
  expect(help.stdout).toContain(`usage: ${usage}`);
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toContain(`usage: ${usage}`);
  expect(wrong.stderr).not.toMatch(/^ {4}at /m);
});

test.for([
  ['--sizes', '0'],
  ['--systems', 'cairn,nothing'],
  ['--texts', 'any'],
  ['--cap', 'long'],
])('the bench of peers refuses %s %s', async (words) => {
  const wrong = await run('scale.ts', '--peers', ...words);
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toContain('usage: npm run bench -- --peers [--sizes');
});

test('a measurement says how it is called, and takes nothing else', async () => {
  const usage = 'usage: npm run measure -- service [MEMORIES] [CONNECTIONS]\n';
  const [help, wrong] = await Promise.all([
    run('measure.ts', 'service', '--help'),
    run('measure.ts', 'service', 'many'),
  ]);
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining(usage) as string });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining(usage) as string });
});

test('every measurement that is listed is there', async () => {
  const { stdout } = await run('measure.ts');
  const names = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !fs.existsSync(path.join(BENCH, `${name}.ts`)))).toEqual([]);
});
