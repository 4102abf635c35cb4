// touched
