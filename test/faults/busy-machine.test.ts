import { spawn } from 'node:child_process';
import os from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { createParserPool } from '../../src/engine/adapters/parser-pool.ts';
import { askParser, STUB_PARSER } from '../support/ask-parser.ts';

test.runIf(process.platform === 'linux')('a document is not given up because the machine is busy', async () => {
  const pool = createParserPool({ size: 1, timeoutMs: 2_000, heapMb: 128, entry: STUB_PARSER });
  onTestFinished(() => pool.close());
  await askParser(pool, ['calls']);
  // One a core: a parser, which stands behind them, gets a twentieth of a core.
  for (let core = 0; core < os.availableParallelism(); core++) {
    const loop = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
    onTestFinished(() => void loop.kill('SIGKILL'));
  }
  expect(await askParser(pool, ['compute', 300])).toBe('computed');
});
