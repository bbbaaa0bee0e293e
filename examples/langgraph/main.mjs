// A graph and an agent with Cairn as their memory, and two clients of others, unchanged. The model is a stand-in that needs
// no key: put a real one in its place.
//
//   CAIRN_URL=http://127.0.0.1:8080 CAIRN_KEY=… npm start
import assert from 'node:assert/strict';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { Client } from '@langchain/langgraph-sdk';
import { CairnChatHistory, cairnMemory, CairnRetriever, CairnStore } from 'cairn-memory/langgraph';
import { createAgent, createMiddleware } from 'langchain';
import openmemory from 'openmemory-js';

const server = { url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080', apiKey: process.env.CAIRN_KEY };
const say = (what) => console.log(`ok: ${what}`);

// ── A graph whose nodes keep things in the store ──────────────────────────────────────────────────────────────────────

const store = new CairnStore({ ...server, userId: 'ana' });
const graph = new StateGraph(Annotation.Root({ asked: Annotation(), found: Annotation() }))
  .addNode('remember', async ({ asked }, { store }) => {
    await store.put(['notes', 'ana'], 'latest', { text: asked, kind: 'note' });
    return {};
  })
  .addNode('look', async (_, { store }) => {
    const items = await store.search(['notes'], { query: 'Who waters the ferns?', filter: { kind: 'note' } });
    return { found: items.map(({ value }) => value.text) };
  })
  .addEdge(START, 'remember')
  .addEdge('remember', 'look')
  .addEdge('look', END)
  .compile({ store });
const { found } = await graph.invoke({ asked: 'Ana waters the ferns on Fridays.' });
assert.deepEqual(found, ['Ana waters the ferns on Fridays.']);
say('graph with a store');

// ── A retriever ───────────────────────────────────────────────────────────────────────────────────────────────────────

const documents = await new CairnRetriever({ ...server, userId: 'ana', k: 3 }).invoke('Who waters the ferns?');
assert.match(documents[0].pageContent, /Ana waters the ferns/);
assert.ok(documents[0].metadata.score > 0);
say('retriever');

// ── A chat history ────────────────────────────────────────────────────────────────────────────────────────────────────

const history = new CairnChatHistory({ ...server, userId: 'ana', sessionId: 'support:7.1' });
await history.clear();
await history.addMessages([new HumanMessage('Where is my parcel?'), new AIMessage('In Oslo.')]);
await history.addMessage(new HumanMessage('Thanks.'));
const said = await new CairnChatHistory({ ...server, userId: 'ana', sessionId: 'support:7.1' }).getMessages();
assert.deepEqual(
  said.map((message) => [message.type, message.text]),
  [
    ['human', 'Where is my parcel?'],
    ['ai', 'In Oslo.'],
    ['human', 'Thanks.'],
  ],
);
await history.clear();
assert.deepEqual(await history.getMessages(), []);
say('chat history');

// ── An agent that remembers ───────────────────────────────────────────────────────────────────────────────────────────

const instructions = [];
const watch = createMiddleware({
  name: 'Watch',
  wrapModelCall(request, handler) {
    instructions.push(request.systemMessage.text);
    return handler(request);
  },
});
const memory = cairnMemory({ ...server, userId: 'ben', onError: (error) => assert.fail(error) });
const agent = createAgent({
  model: new FakeListChatModel({ responses: ['Noted.', 'Teal.'] }),
  tools: [],
  systemPrompt: 'You are helpful.',
  middleware: [createMiddleware(memory), watch],
});
await agent.invoke({ messages: [new HumanMessage('The colour of my bicycle is teal.')] });
assert.equal(instructions[0], 'You are helpful.');
await agent.invoke({ messages: [new HumanMessage('What is the colour of my bicycle?')] });
assert.match(instructions[1], /^You are helpful\.[\s\S]*colour of my bicycle is teal/);
say('agent with recall and capture');

// ── LangGraph's own client of a store ─────────────────────────────────────────────────────────────────────────────────

const client = new Client({ apiUrl: server.url, apiKey: server.apiKey ?? null });
await client.store.putItem(['sdk', 'one'], 'k', { text: 'From the SDK.' }, { ttl: 60 });
const item = await client.store.getItem(['sdk', 'one'], 'k');
assert.deepEqual([item.namespace, item.key, item.value], [['sdk', 'one'], 'k', { text: 'From the SDK.' }]);
assert.ok(Date.parse(item.createdAt) > 0);
const searched = await client.store.searchItems(['sdk'], { filter: { text: 'From the SDK.' }, limit: 2 });
assert.deepEqual(
  searched.items.map(({ key }) => key),
  ['k'],
);
assert.deepEqual((await client.store.listNamespaces({ prefix: ['sdk'], maxDepth: 2 })).namespaces, [['sdk', 'one']]);
await client.store.deleteItem(['sdk', 'one'], 'k');
assert.equal(await client.store.getItem(['sdk', 'one'], 'k'), null);
say("LangGraph's SDK");

// ── OpenMemory's client, call by call ─────────────────────────────────────────────────────────────────────────────────

const open = new openmemory.OpenMemory({ baseUrl: server.url, apiKey: server.apiKey });
assert.equal((await open.health()).ok, true);
assert.equal((await open.getSectors()).sectors.length, 5);
const added = await open.add('Cleo plays the cello.', { user_id: 'cleo', tags: ['music'], metadata: { level: 3 } });
assert.equal((await open.query('Who plays the cello?', { user_id: 'cleo', k: 2 })).matches[0].id, added.id);
assert.ok(Array.isArray((await open.querySector('Who plays?', 'semantic')).matches));
assert.equal((await open.reinforce(added.id)).ok, true);
assert.ok((await open.getAll({ limit: 5, offset: 0 })).items.length > 0);
assert.ok(Array.isArray((await open.getBySector('semantic')).items));
assert.equal((await open.getUserMemories('cleo')).items.length, 1);
assert.match((await open.getUserSummary('cleo')).summary, /Cleo plays the cello/);
assert.equal((await open.regenerateUserSummary('cleo')).ok, true);
assert.equal((await open.update(added.id, { tags: ['strings'] })).updated, true);
assert.equal((await open.getStats()).stats.length > 0, true);
assert.equal((await open.lgmGetConfig()).mode, 'langgraph');
const node = await open.lgmStore({ node_id: 'observe', content: 'The lamp flickers.', namespace: 'demo' });
assert.equal(node.memory.primary_sector, 'episodic');
const nodes = await open.lgmRetrieve({ node_id: 'observe', query: 'lamp', namespace: 'demo', k: 2 });
assert.equal(nodes.items[0].id, node.memory.id);
assert.match((await open.lgmGetContext({ node_id: 'observe', namespace: 'demo' })).summary, /lamp flickers/);
const reflected = await open.lgmCreateReflection({ node_id: 'reflect', content: 'Lamps age.', namespace: 'demo' });
assert.equal(reflected.memory.primary_sector, 'reflective');
assert.equal((await open.delete(added.id)).ok, true);
say('openmemory-js');
