import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { acquireInstanceLock, shareInstanceLock } from '../../../src/engine/store/instance-lock.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MODULE = pathToFileURL(path.resolve(import.meta.dirname, '../../../src/engine/store/instance-lock.ts')).href;

/** Another process that holds the lock until it is killed, or says why it could not get it. */
async function lockInChild(file: string, lock = 'acquireInstanceLock') {
  const script = `
    import { ${lock} } from ${JSON.stringify(MODULE)};
    try {
      ${lock}(${JSON.stringify(file)});
      setInterval(() => {
        globalThis.gc(); // A lock that nobody refers to must be held all the same.
        process.stdout.write('locked');
      }, 1);
    } catch (error) {
      process.stdout.write(error.code + ': ' + error.message);
    }`;
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    said: said.toString(),
    pid: child.pid,
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('a second process is told who holds the folder, and gets the lock once the holder was killed', async () => {
  const file = path.join(tempFolder(), 'data', 'cairn.lock');
  const first = await lockInChild(file);
  expect(first.said).toContain('locked');

  const acquire = () => acquireInstanceLock(file);
  expect(acquire).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(acquire).toThrow(
    `another Cairn process (pid ${first.pid}) uses the data in ${path.dirname(file)}: stop it first`,
  );

  await first.kill();
  const lock = acquire();
  expect(acquire, 'a refused try must not drop our POSIX lock, as closing any descriptor of the file would').toThrow();
  const second = await lockInChild(file);
  expect(second.said).toContain(`conflict: another Cairn process (pid ${process.pid})`);
  lock.release();
});

test('one process cannot serve a folder twice, and may again after a release', () => {
  const file = path.join(tempFolder(), 'cairn.lock');
  const lock = acquireInstanceLock(file);
  expect(() => acquireInstanceLock(file)).toThrow(expect.objectContaining({ code: 'conflict' }));
  lock.release();

  const next = acquireInstanceLock(file);
  lock.release();
  expect(() => acquireInstanceLock(file), 'a second release of an old lock releases nothing').toThrow();
  expect(fs.readFileSync(`${file}.pid`, 'utf8')).toBe(`${process.pid}\n`);
  next.release();
});

test('any number share the folder, and none has it alone until all are gone', async () => {
  const file = path.join(tempFolder(), 'cairn.lock');
  // A number that a holder left behind who was killed names nobody.
  fs.writeFileSync(`${file}.pid`, '1\n');
  const [first, second] = [await lockInChild(file, 'shareInstanceLock'), await lockInChild(file, 'shareInstanceLock')];
  expect([first.said, second.said]).toEqual([expect.stringContaining('locked'), expect.stringContaining('locked')]);
  const own = shareInstanceLock(file);
  const acquire = () => acquireInstanceLock(file);
  const refusal = `an API or workers use the data in ${path.dirname(file)}: stop them first`;
  expect(acquire).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(acquire).toThrow(refusal);
  await first.kill();
  own.release();
  expect(acquire, 'the one that is left still shares it').toThrow(refusal);
  await second.kill();

  const alone = acquire();
  const late = await lockInChild(file, 'shareInstanceLock');
  expect(late.said).toContain(`conflict: another Cairn process (pid ${process.pid})`);
  alone.release();
  shareInstanceLock(file).release();
});

test('without a readable number the message does without', () => {
  const file = path.join(tempFolder(), 'cairn.lock');
  const lock = acquireInstanceLock(file);
  fs.writeFileSync(`${file}.pid`, 'garbage');
  expect(() => acquireInstanceLock(file)).toThrow('another Cairn process uses the data in');
  fs.rmSync(`${file}.pid`);
  expect(() => acquireInstanceLock(file)).toThrow('another Cairn process uses the data in');
  lock.release();
});

test.skipIf(process.platform === 'win32')('only the owner can enter the folder and read the files', () => {
  const file = path.join(tempFolder(), 'data', 'cairn.lock');
  const lock = acquireInstanceLock(file);
  expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  expect(fs.statSync(`${file}.pid`).mode & 0o777).toBe(0o600);
  lock.release();
});
