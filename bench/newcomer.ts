/**
 * How long a newcomer needs: `npm run measure -- newcomer [install]`. Clones the last commit into a folder of its own,
 * starts it as the README says, opens the console and follows the words of the empty page to the first explained
 * answer. With `install` it runs `npm ci` in the clone, which needs the network; without, the clone uses what is
 * installed here.
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { walkAsNewcomer } from '../test/support/newcomer.ts';
import { launchBrowser } from './console/browser.ts';
import { report } from './report.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const installs = process.argv[2] === 'install';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-newcomer-'));
const clone = path.join(folder, 'cairn');
const began = performance.now();
const seconds = () => (performance.now() - began) / 1000;
execFileSync('git', ['clone', '--quiet', '--depth', '1', `file://${ROOT}`, clone]);
if (installs) execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: clone, stdio: 'ignore' });
else {
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(clone, 'node_modules'));
  execFileSync('npm', ['run', '--silent', 'build:console'], { cwd: clone });
}
const installed = seconds();
const service = spawn('npm', ['start', '--silent'], {
  cwd: clone,
  env: { PATH: process.env['PATH'], HOME: process.env['HOME'], OM_PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const url = await new Promise<string>((resolve, reject) => {
    service.once('exit', () => reject(new Error('the service ended at its start')));
    createInterface({ input: service.stdout }).on('line', (line) => {
      const url = /"msg":"ready".*/.test(line) ? /"url":"([^"]+)"/.exec(line)?.[1] : undefined;
      if (url !== undefined) resolve(url);
    });
  });
  const started = seconds();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  const reason = await walkAsNewcomer(page, url);
  if (!reason.includes('rank 1')) throw new Error(`the answer is not explained: ${reason}`);
  report('newcomer_s', seconds(), {
    [installs ? 'clone_and_npm_ci_s' : 'clone_and_build_s']: installed,
    npm_start_s: started - installed,
    console_s: seconds() - started,
  });
} finally {
  service.kill('SIGTERM');
  await new Promise((resolve) => (service.exitCode === null ? service.once('exit', resolve) : resolve(null)));
  fs.rmSync(folder, { recursive: true, force: true });
}
