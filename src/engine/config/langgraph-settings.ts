import { z } from 'zod';
import { flag, integer } from './setting-kinds.ts';

/** The schema of the settings of OpenMemory's routes for LangGraph, under OpenMemory's names. */
export const LANGGRAPH_SETTINGS = {
  OM_MODE: z
    .enum(['standard', 'langgraph'])
    .default('standard')
    .describe("langgraph answers OpenMemory's five /lgm routes (docs/guides/langgraph.md)."),
  OM_LG_NAMESPACE: z
    .string()
    .max(100, 'expected at most 100 characters')
    .default('default')
    .describe('Namespace of /lgm requests that name none.'),
  OM_LG_MAX_CONTEXT: integer(50, 1, 200).describe('Greatest number of memories of one node in a reply of /lgm.'),
  OM_LG_REFLECTIVE: flag(true).describe(
    'Whether POST /lgm/store also writes a reflection on what it stores, unless the request says otherwise.',
  ),
};
