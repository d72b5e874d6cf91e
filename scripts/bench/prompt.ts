/** What chats of the benches ask: 300 characters. */
export const prompt = "Explain what a queue is good for, and when it is not. ".repeat(6).slice(0, 300);
