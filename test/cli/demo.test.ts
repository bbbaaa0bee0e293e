import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn, startCairn } from './run-cairn.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
let documents: string;

beforeAll(() => {
  documents = tempFolder();
  fs.mkdirSync(path.join(documents, 'docs'));
  fs.writeFileSync(
    path.join(documents, 'README.md'),
    [
      '# Harbour',
      'The harbour lies on the north side of the island and is open to ferries in every season.',
      '## Ferries',
      'The ferry to the mainland leaves at nine in the morning and returns at six in the evening.',
      'The ferry to the mainland leaves at nine in the morning on weekdays and returns at seven.',
    ].join('\n\n'),
  );
  fs.writeFileSync(
    path.join(documents, 'docs', 'birds.md'),
    '# Birds\n\nHerons stand in the shallow water and wait for fish to come by.\n',
  );
});

/** Where the demo makes its store, to see that nothing stays. */
function ownTemp(): { readonly folder: string; readonly settings: Record<string, string> } {
  const folder = tempFolder();
  return { folder, settings: { TMPDIR: folder, TEMP: folder } };
}

describe('demo', () => {
  test('answers questions about a folder with reasons, shows a waypoint with both texts, and leaves nothing', async () => {
    const { folder, settings } = ownTemp();
    const questions = ['When does the ferry leave?', 'What do herons wait for?'];
    const { code, stdout, stderr } = await runCairn(
      ['demo', documents, '--ask', questions[0]!, '--ask', questions[1]!],
      { settings },
    );
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^(?:Encoding \d+% · stored after [\d.]+ s.*\n)*Encoding 100% · .*ready after [\d.]+ s\n$/,
      ) as string,
    });
    expect(stdout).toContain('Remembering 4 passages of README.md, docs/birds.md');
    for (const question of questions) expect(stdout).toContain(`▸ ${question}`);
    const [, ferries, herons, waypoint] = stdout.split('▸');
    expect(ferries).toMatch(
      / 1 {2}[01]\.\d\d {2}README\.md › Harbour › Ferries .*\n.*The ferry to the mainland leaves/,
    );
    expect(ferries).toMatch(/words +rank 1, matched: .*ferry/);
    expect(herons).toMatch(/ 1 {2}[01]\.\d\d {2}docs\/birds\.md › Birds/);
    // The note repeats the best hit, which is therefore nearest.
    expect(waypoint).toMatch(
      /A note\n +Remember: (The ferry|Herons)[^↓]*↓ similarity 0\.[5-9]\d, weight[^↓]*\.md › [^↓]*\1/,
    );
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  test('without arguments it asks three questions about Cairn itself', async () => {
    const { settings } = ownTemp();
    const { code, stdout } = await runCairn(['demo'], { settings });
    expect(code).toBe(0);
    expect(stdout).toMatch(/Remembering [\d,]+ passages of .*\.md/);
    expect(stdout.match(/^▸ .*\?$/gm)).toHaveLength(3);
    expect(stdout.match(/words +rank 1, matched/g)).toHaveLength(3);
    expect(stdout).toMatch(/▸ A note is added[\s\S]*↓ similarity 0\.[5-9]\d[\s\S]*\.md › /);
    const { files } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
    expect(files).toEqual(expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'docs']));
  });

  test.skipIf(process.platform === 'win32')('Ctrl-C in the middle leaves nothing behind', async () => {
    const { folder, settings } = ownTemp();
    const child = startCairn(['demo'], { settings });
    await once(child.stdout!, 'data');
    expect(fs.readdirSync(folder)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  test('colour is used where it is asked for, and a folder without documents is one line', async () => {
    const coloured = await runCairn(['demo', documents], { settings: { FORCE_COLOR: '1' } });
    expect(coloured.stdout).toContain('\u001b[1m');
    const plain = await runCairn(['demo', documents], { settings: { NO_COLOR: '1' } });
    expect(plain.stdout).not.toContain('\u001b');
    const { code, stderr } = await runCairn(['demo', tempFolder()]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cairn: no Markdown files with text in .*\n$/) as string,
    });
  });
});
