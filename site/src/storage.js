/** Preferences that outlive the page; a sandboxed frame has no storage and does without. */

const PREFIX = "kvcore-";

export function remembered(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // Not kept, and nothing else depends on it.
  }
}
