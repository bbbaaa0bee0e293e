/** `cairn-memory/mastra`: Cairn as the memory of agents of Mastra (`@mastra/core` 1). */
export { createTools as cairnTools, type CairnTools, type CairnToolsOptions } from '../tools.ts';
export { cairnProcessor, type CairnProcessor, type CairnProcessorOptions } from './processor.ts';
