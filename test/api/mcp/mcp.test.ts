import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callTool, connectMcp, ERAS } from '../../support/mcp-client.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../../support/start-api.ts';
import { tempFolder } from '../../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

describe.each(ERAS)('the official client, %s', (era) => {
  test('lists', async () => {
    const client = await connectMcp(`${api.url}/mcp`, { era, key: ADMIN_KEY });
    console.log(client.getServerVersion(), client.getInstructions?.());
    console.log(JSON.stringify((await client.listTools()).tools, null, 1));
    console.log(
      JSON.stringify(await client.listResources()),
      JSON.stringify(await client.listResourceTemplates()),
      JSON.stringify(await client.listPrompts()),
    );
    console.log(await callTool(client, 'remember', { content: `Ana deploys on Tuesday ${era}.`, tags: ['deploy'] }));
    console.log(await callTool(client, 'recall', { query: 'when does Ana deploy?' }));
    console.log(await callTool(client, 'list_recent', {}));
    console.log(await callTool(client, 'find_entities', { name: 'ana' }));
    await client.close();
  });
});
