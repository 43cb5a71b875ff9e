// Starts `placedsl lsp` for .place documents, and ends it with the editor.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("place");
  if (!settings.get("server.enabled", true)) {
    return;
  }
  const command = settings.get("server.path", "placedsl");
  const server = { command, args: ["lsp"] };
  const options = {
    documentSelector: [
      { scheme: "file", language: "place" },
      { scheme: "untitled", language: "place" },
    ],
    // A document is checked again when a graph file beside it changes.
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{json,txt}") },
  };
  client = new LanguageClient("place", "Place", { run: server, debug: server }, options);
  try {
    await client.start();
  } catch (problem) {
    client = undefined;
    const settingsButton = "Open settings";
    const chosen = await vscode.window.showErrorMessage(
      `'${command} lsp' cannot be started (${problem.message}). Install it with: pip install "placedsl[editor]", ` +
        "or name the command in the setting place.server.path.",
      settingsButton,
    );
    if (chosen === settingsButton) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "place.server.path");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running !== undefined) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("place.restartServer", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("place.server")) {
        return restart();
      }
      return undefined;
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
