import { afterAll, beforeAll, expect } from 'vitest';
import { openStore } from '../../src/engine/store/open-store.ts';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { freePort } from '../support/free-port.ts';
import { makePdf } from '../support/make-pdf.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { seedMemories } from '../support/seed-store.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The console over time: documents on their way, a service that dies and returns, and long lists. */

/** Scrolls the list of memories to its end. */
const TO_END = 'document.querySelector(".list").scrollTo(0, 1e9)';

/** Finds a point of the canvas around which all is of one colour that is not the background: the inside of a node. */
const INSIDE_A_NODE = `(() => {
  const canvas = document.querySelector('canvas');
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  const colourAt = (x, y) => data.slice((y * width + x) * 4, (y * width + x) * 4 + 3).join();
  for (let y = 2; y < height - 2; y++)
    for (let x = 2; x < width - 2; x++) {
      const colour = colourAt(x, y);
      if (colour === colourAt(0, 0)) continue;
      if ([-2, 2].every((step) => colourAt(x + step, y) === colour && colourAt(x, y + step) === colour)) return [x, y];
    }
})()`;

/** Drops a file onto the page, as a mouse does. */
const dropOf = ({ name, mimeType, buffer }: { name: string; mimeType: string; buffer: Buffer }) => `(() => {
  const bytes = Uint8Array.from(atob('${buffer.toString('base64')}'), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], '${name}', { type: '${mimeType}' }));
  for (const type of ['dragover', 'drop'])
    document
      .querySelector('.drop')
      .dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: files }));
})()`;

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
});
afterAll(() => api.stop());

browserTest('a PDF that is dropped is followed until a question finds it, and deleted', async () => {
  const bytes = makePdf({ pages: [{ texts: [{ text: 'The ferry to Cacilhas leaves at seven.', x: 72, y: 700 }] }] });
  await using opened = await openConsole(api.url, 'documents');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'No document yet' }).waitFor();
  const file = { name: 'ferry.pdf', mimeType: 'application/pdf', buffer: Buffer.from(bytes) };
  await page.evaluate(dropOf(file));
  const row = page.getByRole('row').filter({ hasText: 'ferry' });
  await row.getByText('ready').waitFor({ timeout: 120_000 });
  await row.getByRole('link').first().click();
  await page.getByLabel('Extracted text').getByText('The ferry to Cacilhas leaves at seven.').waitFor();
  await page.getByText('1 new, 0 kept, 0 removed').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await show(page, api.url, 'ask?query=when%20does%20the%20ferry%20leave%3F');
  await page.getByRole('article').getByText('page 1').waitFor();
  await page
    .getByRole('article')
    .getByRole('link', { name: /page 1/ })
    .click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: /Deleted with/ }).waitFor();
  await page.getByRole('link', { name: 'Documents' }).last().click();

  await page.locator('input[type=file]').setInputFiles({ ...file, name: 'fake.pdf', buffer: Buffer.from('MZ no pdf') });
  await page.getByRole('alert').filter({ hasText: 'fake.pdf' }).waitFor();
});

browserTest('while the service is away the page says so, and goes on when it is back', async () => {
  const folder = tempFolder();
  const settings = { OM_API_KEY: ADMIN_KEY, OM_PORT: String(await freePort()) };
  const first = await startServiceProcess({ folder, settings });
  const url = await first.ready;
  await using opened = await openConsole(url, 'work');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByText('Nothing waits').waitFor();
  await first.end('SIGKILL');
  await page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor();
  const second = await startServiceProcess({ folder, settings });
  await page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor({ state: 'detached' });
  await page.getByText('Nothing waits').waitFor();
  await second.end('SIGTERM');
});

browserTest('a page whose files are gone, as after an upgrade, says so and is loaded again', async () => {
  await using opened = await openConsole(api.url, 'ask');
  const { page, context } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
  await context.route('**/console/decay-*.js', (route) => route.fulfill({ status: 404, body: 'no such path' }));
  await page.getByRole('link', { name: 'Decay' }).click();
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor();
  await context.unroute('**/console/decay-*.js');
  await page.getByRole('button', { name: 'Load again' }).click();
  await page.getByRole('heading', { name: 'Decay', exact: true }).waitFor();
});

browserTest(
  'of a hundred thousand memories few are in the page, however far one scrolls',
  async () => {
    const folder = tempFolder();
    const store = openStore(`${folder}/cairn.sqlite`, { role: 'worker', create: true });
    const memories = Array.from({ length: 100_000 }, (_, number) => ({
      content: `Memory number ${number}.`,
      userId: 'ana',
    }));
    await seedMemories(store, memories, Date.now());
    store.close();
    const large = await startApi({ folder });
    await using opened = await openConsole(large.url, 'browse');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    const list = page.getByRole('list', { name: 'List of memories' });
    await list.getByRole('listitem').first().waitFor();
    const loaded = async () => Number((await page.getByText(/memories loaded/).textContent())!.replaceAll(/\D/g, ''));
    let most = 0;
    for (;;) {
      await page.evaluate(TO_END);
      most = Math.max(most, await list.getByRole('listitem').count());
      if ((await loaded()) === 100_000) break;
    }
    await page.evaluate(TO_END);
    await list.getByText('Memory number 0.', { exact: true }).waitFor();
    expect(most).toBeLessThan(60);
    expect(await list.getByRole('listitem').count()).toBeLessThan(60);
    await large.stop();
  },
  600_000,
);

browserTest('a map of a user is drawn and opened, and admins see keys and limits', async () => {
  await api.request('POST', '/memory/add?wait=60000', {
    body: { content: 'Hugo plays chess in Porto.', user_id: 'hugo' },
  });
  await using opened = await openConsole(api.url, 'graph?user_id=hugo');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('img', { name: /Map of memories/ }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  const painted =
    'const c = document.querySelector("canvas"); ' +
    'c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((value) => value > 0)';
  await expect.poll(() => page.evaluate(painted)).toBe(true);
  await page.locator('canvas[data-settled]').waitFor();
  const [x, y] = await page.evaluate<[number, number]>(INSIDE_A_NODE);
  await page.locator('canvas').click({ position: { x, y } });
  await expect.poll(() => page.url()).toMatch(/#\/(memory|name)\//);
  await show(page, api.url, 'graph?user_id=hugo');
  await page.getByRole('link', { name: 'Hugo plays chess in Porto.' }).click();
  await page.getByRole('heading', { name: 'Memory' }).waitFor();
  api.engine.control.createKey({ tenantId: 'default', role: 'read', label: 'Telephone' });
  await show(page, api.url, 'admin');
  await page.getByRole('cell', { name: 'Telephone', exact: true }).waitFor();
  for (const tab of ['limits', 'settings', 'model', 'audit']) {
    await show(page, api.url, `admin?tab=${tab}`);
    expect(await violationsOf(page), tab).toEqual([]);
  }
  await show(page, api.url, 'admin?tab=limits');
  await page.getByLabel('Own queries').fill('600');
  await page.getByLabel('Own queries').blur();
  await page.getByRole('row', { name: /^queries 600 this tenant/ }).waitFor();
});
