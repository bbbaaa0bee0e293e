import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { checkPackage, Package } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { expect, test } from 'vitest';
import { tempFolder } from './support/temp-folder.ts';

/** What a program gets that installs this package: its entry points, their types, and the example in the README. */

const ROOT = path.resolve(import.meta.dirname, '..');
const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
  readonly name: string;
  readonly version: string;
  readonly scripts: Record<string, string>;
};

test('the example in the README runs, on the sources', () => {
  const readme = fs.readFileSync(path.join(ROOT, 'README.md'), 'utf8');
  const example = /## In a Node program\n.*?```ts\n(.*?)```/s.exec(readme)?.[1];
  expect(example?.trim().split('\n').length).toBeLessThanOrEqual(15);
  const folder = tempFolder();
  fs.writeFileSync(path.join(folder, 'example.mts'), example!);
  const hook = path.join(ROOT, 'test/support/self-reference.mjs');
  const output = execFileSync(process.execPath, ['--import', hook, 'example.mts'], { cwd: folder, encoding: 'utf8' });
  expect(output).toMatch(/^[01]\.\d\d Deploys to staging happen every Tuesday after the stand-up\.\n$/);
});

test('the package says where its modules and their types are, and both are there', async () => {
  const files = builtFiles();
  const problems = await publint({ pkgDir: 'package', pack: { files } });
  expect(problems.messages.filter(({ type }) => type !== 'suggestion')).toEqual([]);
  const named = Object.fromEntries(
    files.map(({ name, data }) => [name.replace('package/', `/node_modules/${manifest.name}/`), new Uint8Array(data)]),
  );
  const types = await checkPackage(new Package(named, manifest.name, manifest.version));
  // It is for Node and ECMAScript modules alone: `require` and the resolution of old bundlers are not served.
  const modern = ['node16-esm', 'bundler'];
  const ofInterest = (types.types !== false && types.problems) || [{ kind: 'no types at all' }];
  expect(ofInterest.filter((one) => !('resolutionKind' in one) || modern.includes(one.resolutionKind))).toEqual([]);
}, 900_000);

/** What `npm pack` would take of a fresh build, as a tarball names it. */
function builtFiles(): { readonly name: string; readonly data: ArrayBuffer }[] {
  const folder = tempFolder();
  const compiler = path.join(ROOT, 'node_modules/ts7/bin/tsc');
  const dist = path.join(folder, 'dist');
  execFileSync(process.execPath, [compiler, '-p', path.join(ROOT, 'tsconfig.build.json'), '--outDir', dist]);
  for (const name of ['package.json', 'README.md', 'LICENSE', 'bin']) {
    fs.cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  }
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      const name = path.posix.join('package', path.relative(folder, file).split(path.sep).join('/'));
      return { name, data: Uint8Array.from(fs.readFileSync(file)).buffer };
    });
}
