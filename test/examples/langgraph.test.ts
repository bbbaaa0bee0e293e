import { expect, test } from 'vitest';
import { isAbsent, runExample } from '../support/run-example.ts';

test.skipIf(isAbsent('langgraph'))(
  'a graph, an agent and the clients of LangGraph and OpenMemory run against a server, unchanged',
  async () => {
    expect(await runExample('langgraph', { OM_MODE: 'langgraph' })).toEqual([
      'ok: graph with a store',
      'ok: retriever',
      'ok: chat history',
      'ok: agent with recall and capture',
      "ok: LangGraph's SDK",
      'ok: openmemory-js',
    ]);
  },
);
