// The AI SDK as a client: two asks of one conversation, each with a call of a tool and a text after its result.
//
//   node sdk.mjs PROVIDER BASE_URL streamed|whole [OPTIONS as JSON]
//
// Prints the texts as one line of JSON. Fails if the SDK throws.
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [, , provider, baseURL, how, options = '{}'] = process.argv;
const apiKey = 'dummy';
const model = {
  responses: () => createOpenAI({ baseURL, apiKey }).responses('gpt-5.5'),
  chat: () => createOpenAI({ baseURL, apiKey }).chat('gpt-4.1'),
  anthropic: () => createAnthropic({ baseURL: `${baseURL}/v1`, apiKey })('claude-sonnet-4-5'),
  google: () => createGoogleGenerativeAI({ baseURL: `${baseURL}/v1beta`, apiKey })('gemini-3-pro'),
  mistral: () => createMistral({ baseURL: `${baseURL}/v1`, apiKey })('mistral-large'),
  compatible: () => createOpenAICompatible({ name: 'copy', baseURL, apiKey })('model-1'),
  bedrock: () =>
    createAmazonBedrock({ baseURL, region: 'eu-west-1', apiKey })('anthropic.claude-sonnet-4-5-v1:0'),
}[provider]();

const weather = tool({
  description: 'Current weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, degrees: 21 }),
});

const messages = [];
const texts = [];
for (const content of ['Weather in Oslo?', 'And in Rome?']) {
  messages.push({ role: 'user', content });
  const asked = {
    model,
    messages,
    system: 'Be brief.',
    tools: { weather },
    stopWhen: stepCountIs(4),
    maxRetries: 0,
    providerOptions: JSON.parse(options),
  };
  let answer;
  if (how === 'streamed') {
    answer = streamText({ ...asked, onError: ({ error }) => { throw error; } });
    await answer.consumeStream({ onError: (error) => { throw error; } });
  } else {
    answer = await generateText(asked);
  }
  messages.push(...(await answer.response).messages);
  texts.push(await answer.text);
}
console.log(JSON.stringify(texts));
