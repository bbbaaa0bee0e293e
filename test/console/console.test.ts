import { afterAll, beforeAll, describe, expect } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The console in a real Chromium, against the real service: signing in, asking, and changing what is remembered. */

/** Pixels by which a page is wider than the window. */
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
});
afterAll(() => api.stop());

/** Adds a memory and waits until it is understood. */
async function remember(content: string, fields: object = {}): Promise<string> {
  const { body } = await api.request('POST', '/memory/add?wait=60000', { body: { content, ...fields } });
  return body.id;
}

browserTest('the page is painted before its script has come, and goes on once it is there', async () => {
  await using opened = await openConsole(api.url, 'ask');
  const { page } = opened;
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('about:blank');
  const script = Promise.withResolvers<void>();
  await page.route('**/console/*.js', async (route) => {
    await script.promise;
    await route.continue();
  });
  await page.goto(`${api.url}/console`, { waitUntil: 'commit' });
  await page.getByRole('banner').getByText('Cairn').waitFor();
  await expect
    .poll(() => page.evaluate('performance.getEntriesByName("first-contentful-paint").length'))
    .toBeGreaterThan(0);
  expect(await page.getByRole('heading').count()).toBe(0);
  script.resolve();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
});

describe('signing in', () => {
  browserTest('a wrong key says what is wrong, and a right one opens the page', async () => {
    await using opened = await openConsole(api.url);
    const { page } = opened;
    await signIn(page, 'cairn_0123456789abcdef_short');
    await page.getByText('incomplete').waitFor();
    await signIn(page, 'wrong-key');
    await page.getByText('not known here').waitFor();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
    const [cookie] = await opened.context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    expect(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'),
    ).not.toContain(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  browserTest(
    'a reader sees no button that would be refused, and one whose key is revoked is asked again',
    async () => {
      const id = await remember('The reader may look at this and change nothing.');
      const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
      await using opened = await openConsole(api.url, `memory/${id}`);
      const { page } = opened;
      await signIn(page, secret);
      await page.getByText('change nothing').waitFor();
      for (const name of ['Edit', 'Supersede', 'Forget', 'Pin']) {
        expect(await page.getByRole('button', { name }).count(), name).toBe(0);
      }
      await page.getByRole('link', { name: 'Memories' }).first().click();
      await page.getByRole('list', { name: 'List of memories' }).waitFor();
      expect(await page.getByRole('button', { name: 'Add a memory' }).count()).toBe(0);
      expect(await page.getByRole('checkbox').count()).toBe(0);
      api.engine.control.revokeKey(record.id);
      // The page may notice by itself before the click, and then has no such link any more.
      await page
        .getByRole('link', { name: 'Documents' })
        .click({ timeout: 5_000 })
        .catch(() => {});
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    },
  );

  browserTest('a key that is bound to a user sees what is theirs', async () => {
    await remember('Cleo keeps bees on the roof.', { user_id: 'cleo' });
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'cleo' });
    await using opened = await openConsole(api.url, 'browse');
    await signIn(opened.page, secret);
    await opened.page.getByText('Cleo keeps bees on the roof.').waitFor();
    expect(await opened.page.getByText('The reader may look').count()).toBe(0);
    await opened.page.getByText('Sees the memories of cleo only').waitFor();
  });
});

describe('asking', () => {
  browserTest(
    'an answer shows its words and parts; what is missing is explained, and the remedy brings it',
    async () => {
      const expected = await remember('The lighthouse of Belém closes at six.', { user_id: 'dora', tags: ['lisbon'] });
      await remember('Lighthouses need bulbs of a thousand watts.', { user_id: 'dora', tags: ['bulbs'] });
      await using opened = await openConsole(api.url, 'ask?query=lighthouse%20bulbs&user_id=dora&filters.tags=bulbs');
      const { page } = opened;
      await signIn(page, ADMIN_KEY);
      const hit = page.getByRole('article', { name: 'Match 1' });
      await hit.getByText('bulbs', { exact: true }).first().waitFor();
      expect(await hit.locator('mark').allTextContents()).toEqual(expect.arrayContaining(['Lighthouses', 'bulbs']));
      expect(await hit.getByRole('img').getAttribute('aria-label')).toMatch(
        /^Score 0\.\d\d, made of similarity 0\.\d\d/,
      );
      await page.getByLabel('Memory that was expected').fill('Belém closes');
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByRole('listitem').filter({ hasText: 'Belém' }).getByRole('button', { name: 'Why?' }).click();
      await page.getByText('A filter leaves it out.').waitFor();
      await page.getByRole('button', { name: 'Try it' }).click();
      await page.getByText('It is in the answer.').waitFor();
      await page.getByRole('article').filter({ hasText: 'Belém' }).waitFor();
      expect(page.url()).not.toContain('filters.tags');
      expect((await api.request('GET', `/memory/${expected}`)).body['access_count']).toBe(0);
      await page.getByRole('tab', { name: 'Stages' }).click();
      await page.getByRole('cell', { name: 'lexical' }).waitFor();
      await page.getByRole('tab', { name: 'Compare' }).click();
      await page.getByText('Both give the same answer.').waitFor();
      await page.getByRole('tab', { name: 'As code' }).click();
      await page.getByText('cairn.queryMemories(').waitFor();
      await page.getByText(`${api.url}/mcp/users/dora`, { exact: true }).waitFor();
      await page.getByText('More settings').click();
      await page.getByLabel('Floor under scores').fill('0.1');
      await page.getByLabel('Weight of vectors').fill('0.4');
      await page.keyboard.press('Enter');
      await page.getByText('The tool has no vector_weight: the call leaves that out.').waitFor();
      await page.getByText('"min_score": 0.1').last().waitFor();
      await show(
        page,
        api.url,
        'ask?query=lighthouse&tab=code&tenant=default&filters.event_time.from=2026-01-01&filters.sessions=a,b',
      );
      await page.getByText('"since": "2026-01-01T00:00:00.000Z"').waitFor();
      await page.getByText('The tool has no filters.sessions: the call leaves that out.').waitFor();
      await page.getByText('x-cairn-tenant: default', { exact: true }).waitFor();
    },
  );

  browserTest('the same question, asked again, gets the answer of now', async () => {
    await using opened = await openConsole(api.url, 'ask?query=who%20bakes%20the%20bread&user_id=baker');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'No memory answers this' }).waitFor();
    await remember('Bruno bakes the bread.', { user_id: 'baker' });
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByRole('article').getByText('Bruno').waitFor();
    await page.getByRole('tab', { name: 'Compare' }).click();
    await page.getByText('Both give the same answer.').waitFor();
    await remember('Bella bakes the bread on Sundays.', { user_id: 'baker' });
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByRole('row').filter({ hasText: 'Bella' }).waitFor();
    await page.getByText('Both give the same answer.').waitFor();
  });
});

describe('changing', () => {
  browserTest('a memory is edited, superseded and forgotten, and leaves its receipt', async () => {
    const id = await remember('The office is in Rua Augusta 12.', { user_id: 'eva' });
    await using opened = await openConsole(api.url, `memory/${id}`);
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Text').fill('The office is in Rua Augusta 14.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Rua Augusta 14.').waitFor();
    await page.getByRole('tab', { name: 'History' }).click();
    await page.locator('del', { hasText: '12.' }).waitFor();
    await page.locator('ins', { hasText: '14.' }).waitFor();

    await page.getByRole('button', { name: 'Supersede' }).click();
    await page.getByLabel('Text').fill('The office moved to Avenida da Liberdade.');
    await page.getByRole('dialog').getByRole('button', { name: 'Supersede' }).click();
    await page.getByText('The office moved to Avenida da Liberdade.').waitFor();
    expect((await api.request('GET', `/memory/${id}`)).body['status']).toBe('superseded');

    await page.getByRole('button', { name: 'Forget' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
    await page.getByRole('heading', { name: 'Forgotten' }).waitFor();
    expect(await page.getByRole('definition').first().textContent()).toBe('1');
    expect((await api.request('GET', `/memory/${id}`)).body['status']).toBe('active');
  });

  browserTest('a memory that has a successor already gets no second one', async () => {
    const old = await remember('The key hangs in the hall.', { user_id: 'ida' });
    await using opened = await openConsole(api.url, `memory/${old}`);
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('button', { name: 'Supersede' }).click();
    await remember('The key hangs in the kitchen.', { user_id: 'ida', supersedes: old });
    await page.getByLabel('Text').fill('The key hangs in the attic.');
    await page.getByRole('dialog').getByRole('button', { name: 'Supersede' }).click();
    await page.locator('.toast').waitFor();
    const { items } = (await api.request('GET', '/memory/all?user_id=ida')).body;
    expect(items.map(({ content }) => content)).toEqual(['The key hangs in the kitchen.']);
  });

  browserTest('what somebody else changed meanwhile is not overwritten', async () => {
    const id = await remember('The colour of the door is green.');
    await using opened = await openConsole(api.url, `memory/${id}`);
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('button', { name: 'Edit' }).click();
    await api.request('PATCH', `/memory/${id}`, { body: { tags: ['door'] } });
    await page.getByLabel('Text').fill('The colour of the door is red.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Somebody else changed it meanwhile').waitFor();
    expect((await api.request('GET', `/memory/${id}`)).body['content']).toContain('green');
  });
});

describe('hostile content', () => {
  browserTest('stays text', async () => {
    const texts = [
      '<script>document.title = "owned"</script><img src=x onerror="document.title=\'owned\'"> hostile zebra',
      'abc\u202Edcba hostile zebra \u2066x',
      `${'z'.repeat(256 * 1024 - 14)} hostile zebra`,
    ];
    const ids = [];
    for (const text of texts) ids.push(await remember(text, { user_id: '"><script>1</script>', title: '<b>bold</b>' }));
    await using opened = await openConsole(api.url, 'ask?query=hostile%20zebra&min_score=0');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByText('<script>document.title').first().waitFor();
    await page.getByText('RLO').first().waitFor();
    for (const id of ids) {
      await page.goto(`${api.url}/console#/memory/${id}`);
      await page
        .getByText('hostile zebra')
        .or(page.getByRole('button', { name: /Show all/ }))
        .first()
        .waitFor();
    }
    const standing = await api.request('POST', '/standing', { body: { query: texts[1]! } });
    const document = await api.request('POST', '/memory/ingest?wait=60000', {
      body: { text: 'A page.', title: texts[1]!, user_id: 'x' },
    });
    for (const view of [`standing/${standing.body.id}`, `document/${String(document.body['document_id'])}`]) {
      await page.goto(`${api.url}/console#/${view}`);
      await page.getByRole('heading', { level: 1 }).getByText('RLO').waitFor();
    }
    await page.goto(`${api.url}/console#/browse`);
    await page.getByText('<b>bold</b>').first().waitFor();
    expect(await page.title()).toBe('Memories · Cairn');
    expect(await page.locator('main script, main img, main b b').count()).toBe(0);
    expect(await page.evaluate(OVERFLOW)).toBeLessThanOrEqual(0);
  });
});
