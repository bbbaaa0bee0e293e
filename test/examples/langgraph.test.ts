import { expect, test } from 'vitest';
import { isAbsent, runExample } from '../support/run-example.ts';

test.skipIf(isAbsent('langgraph'))(
  'a graph, an agent and the clients of LangGraph and OpenMemory run against a server, unchanged',
  async () => {
    expect(await runExample('langgraph', { OM_MODE: 'langgraph' })).toEqual([
      'ok: a graph with store, retriever, history and middleware',
      "ok: LangGraph's SDK",
      'ok: openmemory-js',
    ]);
  },
);
