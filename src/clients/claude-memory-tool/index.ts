/** `cairn-memory/claude-memory-tool`: the files of Claude's memory tool (`memory_20250818`), kept by a Cairn server. */
export { cairnMemoryFiles, type CairnMemoryFiles, type CairnMemoryFilesOptions } from './handlers.ts';
