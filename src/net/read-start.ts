/**
 * The first `limitBytes` of a response's body as text, and whether there was more; what is left of it is not read.
 * @throws what the connection fails with.
 */
export async function readStart(response: Response, limitBytes: number): Promise<{ text: string; isCut: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  let left = limitBytes;
  for await (const part of response.body ?? []) {
    text += decoder.decode(part.subarray(0, left), { stream: true });
    left -= part.length;
    if (left < 0) return { text, isCut: true }; // leaving the loop ends the connection
  }
  return { text: text + decoder.decode(), isCut: false };
}
