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

// ── A graph with all four: nodes with a store, a retriever and a history, and an agent that remembers by itself ────────

const instructions = [];
const watch = createMiddleware({
  name: 'Watch',
  wrapModelCall(request, handler) {
    instructions.push(request.systemMessage.text);
    return handler(request);
  },
});
const store = new CairnStore({ ...server, userId: 'ana' });
const retriever = new CairnRetriever({ ...server, userId: 'ana', k: 3 });
const historyOf = (sessionId) => new CairnChatHistory({ ...server, userId: 'ana', sessionId });
const memory = cairnMemory({ ...server, userId: 'ana', onError: (error) => assert.fail(error) });
const agent = createAgent({
  model: new FakeListChatModel({ responses: ['Noted.'] }),
  tools: [],
  systemPrompt: 'You are helpful.',
  middleware: [createMiddleware(memory), watch],
});

const State = Annotation.Root({
  asked: Annotation(),
  session: Annotation(),
  answer: Annotation(),
  found: Annotation(),
});
const graph = new StateGraph(State)
  .addNode('note', async ({ asked }, { store }) => {
    await store.put(['notes', 'ana'], 'latest', { text: asked, kind: 'note' });
    return {};
  })
  .addNode('look', async ({ asked }, { store }) => {
    const notes = await store.search(['notes'], { query: asked, filter: { kind: 'note' } });
    const documents = await retriever.invoke(asked);
    return { found: [notes[0].value.text, documents[0].pageContent] };
  })
  .addNode('reply', async ({ asked, session }) => {
    const history = historyOf(session);
    const asking = new HumanMessage(asked);
    const { messages } = await agent.invoke({ messages: [...(await history.getMessages()), asking] });
    await history.addMessages([asking, new AIMessage(messages.at(-1).text)]);
    return { answer: messages.at(-1).text };
  })
  .addEdge(START, 'note')
  .addEdge('note', 'look')
  .addEdge('look', 'reply')
  .addEdge('reply', END)
  .compile({ store });

const told = 'The colour of my bicycle is teal.';
const first = await graph.invoke({ asked: told, session: 'support:7.1' });
assert.equal(first.answer, 'Noted.');
assert.equal(first.found[0], told);
assert.match(first.found[1], /bicycle is teal/);
assert.equal(instructions[0].startsWith('You are helpful.'), true);
// Another conversation: what was said in the first is recalled, and its messages are not there.
await graph.invoke({ asked: 'What is the colour of my bicycle?', session: 'support:7.2' });
assert.match(instructions[1], /^You are helpful\.[\s\S]*colour of my bicycle is teal/);
const said = async (session) => (await historyOf(session).getMessages()).map((message) => [message.type, message.text]);
assert.deepEqual(await said('support:7.1'), [
  ['human', told],
  ['ai', 'Noted.'],
]);
assert.deepEqual(await said('support:7.2'), [
  ['human', 'What is the colour of my bicycle?'],
  ['ai', 'Noted.'],
]);
await historyOf('support:7.1').clear();
assert.deepEqual(await said('support:7.1'), []);
say('a graph with store, retriever, history and middleware');

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

const calls = Object.getOwnPropertyNames(openmemory.OpenMemory.prototype);
const left = new Set(calls.filter((name) => name !== 'constructor' && name !== 'request'));
const open = new Proxy(new openmemory.OpenMemory({ baseUrl: server.url, apiKey: server.apiKey }), {
  get(client, name) {
    left.delete(name);
    return client[name].bind(client);
  },
});
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
// Its calls for editors and for compression have no counterpart, and say so.
for (const name of [...left]) {
  assert.match(name, /^ide[A-Z]|compress/i);
  await assert.rejects(open[name]('x'), /404/);
}
assert.equal(left.size, 0);
say('openmemory-js');
