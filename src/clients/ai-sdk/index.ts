/** `cairn-memory/ai-sdk`: Cairn as the memory of models and agents of Vercel's AI SDK (`ai` 7). */
export { createTools as cairnTools, type CairnTools, type CairnToolsOptions } from '../tools.ts';
export { withCairn, type CairnMiddleware, type WithCairnOptions } from './middleware.ts';
